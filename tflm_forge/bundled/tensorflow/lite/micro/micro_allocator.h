#ifndef TENSORFLOW_LITE_MICRO_MICRO_ALLOCATOR_H_
#define TENSORFLOW_LITE_MICRO_MICRO_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>

#include "tensorflow/lite/c/common.h"

namespace tflite {

// The tensor arena. From its start: the head, where the planner places tensors and scratch buffers
// that share memory, and above it temporary allocations; from its end downwards: what stays.
// Several interpreters may use one allocator: their heads share memory, so that the tensors of one
// are valid until another is invoked.
class MicroAllocator {
 public:
  static constexpr size_t kBufferAlignment = 16;
  static constexpr size_t kPersistentAlignment = 8;

  MicroAllocator() = default;
  MicroAllocator(uint8_t* tensor_arena, size_t arena_size);
  // Places the allocator itself in the arena; null when it does not fit.
  static MicroAllocator* Create(uint8_t* tensor_arena, size_t arena_size);

  MicroAllocator(const MicroAllocator&) = delete;
  MicroAllocator& operator=(const MicroAllocator&) = delete;

  // Null, and a message that names the missing bytes, when there is no room.
  void* AllocatePersistentBuffer(size_t bytes, size_t alignment = kPersistentAlignment);
  uint8_t* AllocateTempBuffer(size_t bytes, size_t alignment);
  // The memory is free again when as many were given back as were allocated.
  void DeallocateTempBuffer(uint8_t* buffer);
  // An error when a temporary buffer is still in use.
  TfLiteStatus ResetTempAllocations();

  // From here to EndPlanning temporary buffers may use the head.
  void BeginPlanning();
  // The head is at least `bytes` long from here on.
  TfLiteStatus EndPlanning(size_t bytes);
  uint8_t* head() const { return start_; }

  // True when an allocation has failed since BeginPlanning(): also kernels that do not look at the
  // result are caught.
  bool exhausted() const { return exhausted_; }

  // The size of the smallest arena with which everything up to now works.
  size_t used_bytes() const;

 private:
  uint8_t* Floor() const;
  bool Fits(const char* what, size_t bytes, size_t available);
  void NoteUse();

  // In the order of TFLM's SingleArenaBufferAllocator: forge reads the first four from RAM.
  uint8_t* start_ = nullptr;
  uint8_t* end_ = nullptr;
  uint8_t* head_end_ = nullptr;
  uint8_t* tail_ = nullptr;
  uint8_t* temp_floor_ = nullptr;
  uint8_t* temp_ = nullptr;
  size_t high_water_ = 0;
  uint16_t temp_count_ = 0;
  uint8_t lost_bytes_ = 0;
  bool exhausted_ = false;
};

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MICRO_ALLOCATOR_H_
