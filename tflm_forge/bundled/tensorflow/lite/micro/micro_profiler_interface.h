#ifndef TENSORFLOW_LITE_MICRO_MICRO_PROFILER_INTERFACE_H_
#define TENSORFLOW_LITE_MICRO_MICRO_PROFILER_INTERFACE_H_

#include <cstdint>

#include "tensorflow/lite/micro/compatibility.h"

namespace tflite {

class MicroProfilerInterface {
 public:
  virtual ~MicroProfilerInterface() {}

  // `tag` is the op's name. Returns a handle for EndEvent.
  virtual uint32_t BeginEvent(const char* tag) = 0;
  virtual void EndEvent(uint32_t event_handle) = 0;

  TF_LITE_REMOVE_VIRTUAL_DELETE
};

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MICRO_PROFILER_INTERFACE_H_
