#ifndef TENSORFLOW_LITE_MICRO_MEMORY_PLAN_H_
#define TENSORFLOW_LITE_MICRO_MEMORY_PLAN_H_

#include <cstddef>
#include <cstdint>

namespace tflite {

// A buffer of the head: what it needs, and the offset that PlanMemory gives it.
struct PlannedBuffer {
  uint32_t bytes;
  uint32_t offset;
  // Of the operators that use it. kNotUsed as the first one: the buffer needs no place.
  uint16_t first_op;
  uint16_t last_op;

  static constexpr uint16_t kNotUsed = 0xFFFF;
  static constexpr uint32_t kNotPlaced = 0xFFFFFFFF;
};

// Larger than any arena; sums of two do not wrap.
constexpr uint32_t kMaxPlannedBytes = 0x40000000;

// Places the buffers so that two that are in use at the same operator never overlap: the largest
// first, each at the lowest offset that is free. `bytes` must be multiples of the alignment,
// at most kMaxPlannedBytes. Returns the length of the head, or kMaxPlannedBytes when it is that
// large.
size_t PlanMemory(PlannedBuffer* buffers, size_t count);

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MEMORY_PLAN_H_
