#ifndef TENSORFLOW_LITE_MICRO_MICRO_CONTEXT_H_
#define TENSORFLOW_LITE_MICRO_MICRO_CONTEXT_H_

#include <cstddef>
#include <cstdint>

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/model_reader.h"

namespace tflite {

constexpr TfLiteStatus kTfLiteAbort = static_cast<TfLiteStatus>(15);

// What a kernel may ask of the interpreter that runs it.
class MicroContext {
 public:
  MicroContext(const void* model, MicroAllocator* allocator)
      : model_(model), allocator_(allocator) {}
  MicroContext(const MicroContext&) = delete;
  MicroContext& operator=(const MicroContext&) = delete;

  // During init and prepare. Aligned for any type of the core; lives as long as the interpreter.
  void* AllocatePersistentBuffer(size_t bytes) {
    return allocator_->AllocatePersistentBuffer(bytes);
  }

  // During prepare. The buffer exists only while this node is invoked.
  TfLiteStatus RequestScratchBufferInArena(size_t bytes, int* buffer_idx);
  // During invoke. Null when there is no such buffer.
  void* GetScratchBuffer(int buffer_idx);

  // During prepare. Each is to be given back before prepare returns. Null when there is no room,
  // and when the node has no such tensor.
  TfLiteTensor* AllocateTempTfLiteTensor(int tensor_idx);
  TfLiteTensor* AllocateTempInputTensor(const TfLiteNode* node, int index) {
    return AllocateTempOf(node->inputs, index);
  }
  TfLiteTensor* AllocateTempOutputTensor(const TfLiteNode* node, int index) {
    return AllocateTempOf(node->outputs, index);
  }
  TfLiteTensor* AllocateTempIntermediateTensor(const TfLiteNode* node, int index) {
    return AllocateTempOf(node->intermediates, index);
  }
  void DeallocateTempTfLiteTensor(TfLiteTensor* tensor) {
    allocator_->DeallocateTempBuffer(reinterpret_cast<uint8_t*>(tensor));
  }
  uint8_t* AllocateTempBuffer(size_t size, size_t alignment) {
    return allocator_->AllocateTempBuffer(size, alignment);
  }
  void DeallocateTempBuffer(uint8_t* buffer) { allocator_->DeallocateTempBuffer(buffer); }

  TfLiteEvalTensor* GetEvalTensor(int tensor_idx) { return &tensors_[tensor_idx]; }

  TfLiteStatus set_external_context(void* external_context_payload);
  void* external_context() { return external_context_; }

 private:
  friend class MicroInterpreter;

  struct ScratchBuffer {
    ScratchBuffer* next;
    uint8_t* data;
    uint32_t bytes;
    uint16_t op_index;
    uint16_t buffer_index;
  };

  TfLiteTensor* AllocateTempOf(const TfLiteIntArray* indices, int index);
  // The vector of bytes of a constant tensor; 0 for a tensor without data of its own.
  ModelPos ConstantData(ModelPos tensor);
  // The tensor with its quantization, in temporary or persistent memory.
  TfLiteTensor* NewTensor(int tensor_idx, bool persistent);

  ModelReader model_;
  MicroAllocator* allocator_;
  ModelPos tensor_table_ = 0;
  ModelPos buffer_table_ = 0;
  TfLiteEvalTensor* tensors_ = nullptr;
  // Newest first.
  ScratchBuffer* scratch_ = nullptr;
  void* external_context_ = nullptr;
  uint16_t op_index_ = 0;
};

inline MicroContext* GetMicroContext(const struct TfLiteContext* context) {
  return static_cast<MicroContext*>(context->impl_);
}

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MICRO_CONTEXT_H_
