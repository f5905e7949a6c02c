// What the device knows of itself: filled by the boot, told by the link.
#pragma once

#include <cstdint>

#include "board.h"
#include "forge_status.h"
#include "model_walk.h"
#include "op_resolver.h"
#include "tensorflow/lite/micro/micro_interpreter.h"

namespace forge {

// In the order in which they run; SELFTEST gives one status for each.
enum BootStep : uint8_t { kBoard, kModel, kRegistration, kSelfCheck, kAllocation, kBootSteps };

struct Device {
  Status steps[kBootSteps];
  uint8_t current_step;
  bool booting;
  uint8_t reset_cause;
  uint32_t arena_used_bytes;  // 0 until the allocation
  ModelWalk model;
  OpResolver* resolver;                   // null until the registration has passed
  tflite::MicroInterpreter* interpreter;  // null until every step has passed: inference is blocked
  const FaultRecord* fault;               // null unless the processor has faulted
};

extern Device g_device;

}  // namespace forge
