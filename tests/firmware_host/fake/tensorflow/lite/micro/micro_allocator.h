#pragma once

#include <cstddef>
#include <cstdint>

namespace tflite {

enum class MemoryPlannerType { kGreedy, kLinear };

class MicroResourceVariables;

// The arena's room is what a test says it is; host_device.cc has the rest.
class MicroAllocator {
 public:
  static MicroAllocator* Create(uint8_t* arena, size_t arena_bytes, MemoryPlannerType type);
  size_t used_bytes() const;
};

}  // namespace tflite
