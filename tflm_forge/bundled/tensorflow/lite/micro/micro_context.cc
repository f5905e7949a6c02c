#include "tensorflow/lite/micro/micro_context.h"

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/memory_plan.h"
#include "tensorflow/lite/micro/micro_log.h"

namespace tflite {

TfLiteStatus MicroContext::RequestScratchBufferInArena(size_t bytes, int* buffer_idx) {
  auto* buffer = static_cast<ScratchBuffer*>(
      allocator_->AllocatePersistentBuffer(sizeof(ScratchBuffer), alignof(ScratchBuffer)));
  if (buffer == nullptr || bytes > kMaxPlannedBytes) return kTfLiteError;
  const uint16_t index = scratch_ == nullptr ? 0 : scratch_->buffer_index + 1;
  *buffer = {scratch_, nullptr, static_cast<uint32_t>(bytes), op_index_, index};
  scratch_ = buffer;
  *buffer_idx = index;
  return kTfLiteOk;
}

void* MicroContext::GetScratchBuffer(int buffer_idx) {
  for (const ScratchBuffer* buffer = scratch_; buffer != nullptr; buffer = buffer->next) {
    if (buffer->buffer_index == buffer_idx) return buffer->data;
  }
  return nullptr;
}

TfLiteTensor* MicroContext::AllocateTempOf(const TfLiteIntArray* indices, int index) {
  if (indices == nullptr || index < 0 || index >= indices->size) return nullptr;
  return AllocateTempTfLiteTensor(indices->data[index]);
}

TfLiteTensor* MicroContext::AllocateTempTfLiteTensor(int tensor_idx) {
  return tensor_idx < 0 ? nullptr : NewTensor(tensor_idx, false);
}

ModelPos MicroContext::ConstantData(ModelPos tensor) {
  const int32_t index = model_.Int32Field(tensor, field::kTensorBuffer);
  if (index == 0) return 0;
  const ModelPos data =
      model_.VectorField(model_.TableAt(buffer_table_, index), field::kBufferData, 1);
  return model_.VectorSize(data) == 0 ? 0 : data;
}

TfLiteTensor* MicroContext::NewTensor(int tensor_idx, bool persistent) {
  struct Quantized {
    TfLiteTensor tensor;
    TfLiteAffineQuantization affine;
    TfLiteIntArray zero_points;
  };
  const ModelPos table = model_.TableAt(tensor_table_, tensor_idx);
  const ModelPos quantization = model_.TableField(table, field::kTensorQuantization);
  const ModelPos scales = model_.VectorField(quantization, field::kQuantizationScale, 4);
  const ModelPos zeros = model_.VectorField(quantization, field::kQuantizationZeroPoint, 8);
  const uint32_t scale_count = model_.VectorSize(scales);
  const uint32_t zero_count = model_.VectorSize(zeros);
  const bool quantized = scale_count > 0 && zero_count > 0;
  const size_t bytes =
      quantized ? sizeof(Quantized) + scale_count * sizeof(int) : sizeof(TfLiteTensor);
  void* place = persistent ? allocator_->AllocatePersistentBuffer(bytes, alignof(Quantized))
                           : allocator_->AllocateTempBuffer(bytes, alignof(Quantized));
  if (place == nullptr) return nullptr;
  auto* result = static_cast<Quantized*>(place);
  TfLiteTensor& tensor = result->tensor;
  const TfLiteEvalTensor& eval_tensor = tensors_[tensor_idx];
  tensor = {};
  tensor.data = eval_tensor.data;
  tensor.dims = eval_tensor.dims;
  tensor.type = eval_tensor.type;
  tensor.is_variable = model_.ByteField(table, field::kTensorIsVariable) != 0;
  tensor.allocation_type = ConstantData(table) == 0 ? kTfLiteArenaRw : kTfLiteMmapRo;
  TfLiteEvalTensorByteLength(&eval_tensor, &tensor.bytes);
  if (!quantized) return &tensor;
  TfLiteAffineQuantization& affine = result->affine;
  affine.scale = model_.FloatArray(scales);
  affine.zero_point = &result->zero_points;
  affine.quantized_dimension = model_.Int32Field(quantization, field::kQuantizationDimension);
  affine.zero_point->size = static_cast<int>(scale_count);
  const int bits = TfLiteTypeGetSizeBits(tensor.type);
  for (uint32_t i = 0; i < scale_count; ++i) {
    const int32_t zero_point = model_.Int64At(zeros, zero_count == scale_count ? i : 0);
    affine.zero_point->data[i] = zero_point;
    // Outside its type a zero point would overflow the kernels' sums.
    const bool is_in_range =
        bits > 16 || (zero_point >= -(1 << bits >> 1) && zero_point < 1 << bits);
    if (!is_in_range) model_.MarkDamaged(zeros);
  }
  if (model_.damaged()) return nullptr;
  tensor.params = {affine.scale->data[0], affine.zero_point->data[0]};
  tensor.quantization = {kTfLiteAffineQuantization, &affine};
  return &tensor;
}

TfLiteStatus MicroContext::set_external_context(void* external_context_payload) {
  if (external_context_payload == nullptr || external_context_ != nullptr) {
    MicroPrintf("Attempting to set external context to %x but it was %x already",
                external_context_payload, external_context_);
    return kTfLiteError;
  }
  external_context_ = external_context_payload;
  return kTfLiteOk;
}

}  // namespace tflite
