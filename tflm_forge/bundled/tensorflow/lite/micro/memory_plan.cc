#include "tensorflow/lite/micro/memory_plan.h"

namespace tflite {
namespace {

bool IsPlaced(const PlannedBuffer& buffer) {
  return buffer.first_op != PlannedBuffer::kNotUsed && buffer.offset != PlannedBuffer::kNotPlaced;
}

PlannedBuffer* LargestToPlace(PlannedBuffer* buffers, size_t count) {
  PlannedBuffer* largest = nullptr;
  for (PlannedBuffer* buffer = buffers; buffer != buffers + count; ++buffer) {
    if (buffer->first_op == PlannedBuffer::kNotUsed || IsPlaced(*buffer)) continue;
    if (largest == nullptr || buffer->bytes > largest->bytes) largest = buffer;
  }
  return largest;
}

// The end of a placed buffer that lies where `wanted` would, at `offset`; 0 when the place is free.
uint32_t EndOfConflict(const PlannedBuffer* buffers, size_t count, const PlannedBuffer& wanted,
                       uint32_t offset) {
  for (const PlannedBuffer* other = buffers; other != buffers + count; ++other) {
    if (!IsPlaced(*other)) continue;
    if (other->last_op < wanted.first_op || other->first_op > wanted.last_op) continue;
    const uint32_t end = other->offset + other->bytes;
    if (other->offset < offset + wanted.bytes && offset < end) return end;
  }
  return 0;
}

}  // namespace

size_t PlanMemory(PlannedBuffer* buffers, size_t count) {
  for (size_t i = 0; i < count; ++i) buffers[i].offset = PlannedBuffer::kNotPlaced;
  uint32_t head_bytes = 0;
  while (PlannedBuffer* buffer = LargestToPlace(buffers, count)) {
    uint32_t offset = 0;
    while (const uint32_t end = EndOfConflict(buffers, count, *buffer, offset)) offset = end;
    if (offset + buffer->bytes > kMaxPlannedBytes) return kMaxPlannedBytes;
    buffer->offset = offset;
    if (offset + buffer->bytes > head_bytes) head_bytes = offset + buffer->bytes;
  }
  return head_bytes;
}

}  // namespace tflite
