#include "tensorflow/lite/micro/micro_allocator.h"

#include <new>

#include "tensorflow/lite/micro/micro_log.h"

namespace tflite {
namespace {

uint8_t* AlignDown(uint8_t* pointer, size_t alignment) {
  return pointer - (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1));
}

}  // namespace

MicroAllocator::MicroAllocator(uint8_t* tensor_arena, size_t arena_size) {
  if (tensor_arena == nullptr) return;
  const size_t misaligned = reinterpret_cast<uintptr_t>(tensor_arena) & (kBufferAlignment - 1);
  const size_t lost = misaligned == 0 ? 0 : kBufferAlignment - misaligned;
  const size_t usable = arena_size < lost ? 0 : arena_size - lost;
  lost_bytes_ = static_cast<uint8_t>(lost);
  start_ = head_end_ = temp_floor_ = temp_ = tensor_arena + (usable == 0 ? 0 : lost);
  end_ = tail_ = start_ + (usable & ~(kBufferAlignment - 1));
}

MicroAllocator* MicroAllocator::Create(uint8_t* tensor_arena, size_t arena_size) {
  MicroAllocator first(tensor_arena, arena_size);
  void* place = first.AllocatePersistentBuffer(sizeof(MicroAllocator));
  if (place == nullptr) return nullptr;
  MicroAllocator* allocator = new (place) MicroAllocator(tensor_arena, arena_size);
  allocator->tail_ = static_cast<uint8_t*>(place);
  allocator->NoteUse();
  return allocator;
}

uint8_t* MicroAllocator::Floor() const { return temp_ > head_end_ ? temp_ : head_end_; }

bool MicroAllocator::Fits(const char* what, size_t bytes, size_t available) {
  if (bytes <= available) return true;
  MicroPrintf("Failed to allocate %s memory. Requested: %u, available %u, missing: %u", what,
              static_cast<unsigned>(bytes), static_cast<unsigned>(available),
              static_cast<unsigned>(bytes - available));
  static_cast<void>(what);
  exhausted_ = true;
  return false;
}

void MicroAllocator::NoteUse() {
  const size_t use = (Floor() - start_) + (end_ - tail_);
  if (use > high_water_) high_water_ = use;
}

void* MicroAllocator::AllocatePersistentBuffer(size_t bytes, size_t alignment) {
  const size_t available = tail_ - Floor();
  if (!Fits("tail", bytes, available)) return nullptr;
  uint8_t* place = AlignDown(tail_ - bytes, alignment);
  if (!Fits("tail", bytes + (tail_ - bytes - place), available)) return nullptr;
  tail_ = place;
  NoteUse();
  return place;
}

uint8_t* MicroAllocator::AllocateTempBuffer(size_t bytes, size_t alignment) {
  const size_t available = tail_ - temp_;
  const size_t padding = -reinterpret_cast<uintptr_t>(temp_) & (alignment - 1);
  if (!Fits("temp", bytes, available) || !Fits("temp", bytes + padding, available)) return nullptr;
  uint8_t* place = temp_ + padding;
  temp_ = place + bytes;
  ++temp_count_;
  NoteUse();
  return place;
}

void MicroAllocator::DeallocateTempBuffer(uint8_t* buffer) {
  if (buffer == nullptr || temp_count_ == 0) return;
  if (--temp_count_ == 0) temp_ = temp_floor_;
}

TfLiteStatus MicroAllocator::ResetTempAllocations() {
  if (temp_count_ == 0) return kTfLiteOk;
  MicroPrintf("All temp buffers must be freed before calling ResetTempAllocations()");
  return kTfLiteError;
}

void MicroAllocator::BeginPlanning() {
  temp_ = temp_floor_ = start_;
  temp_count_ = 0;
  exhausted_ = false;
}

TfLiteStatus MicroAllocator::EndPlanning(size_t bytes) {
  const size_t available = tail_ - start_;
  if (!Fits("head", bytes, available)) return kTfLiteError;
  if (start_ + bytes > head_end_) head_end_ = start_ + bytes;
  temp_ = temp_floor_ = head_end_;
  NoteUse();
  return kTfLiteOk;
}

size_t MicroAllocator::used_bytes() const {
  const size_t rounded = (high_water_ + kBufferAlignment - 1) & ~(kBufferAlignment - 1);
  return rounded == 0 ? 0 : rounded + lost_bytes_;
}

}  // namespace tflite
