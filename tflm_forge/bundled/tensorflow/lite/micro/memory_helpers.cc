#include "tensorflow/lite/micro/memory_helpers.h"

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/memory_plan.h"

namespace tflite {

TfLiteStatus TfLiteTypeSizeOf(TfLiteType type, size_t* size) {
  *size = static_cast<size_t>(TfLiteTypeGetSize(type));
  return *size == 0 ? kTfLiteError : kTfLiteOk;
}

TfLiteStatus TfLiteEvalTensorByteLength(const TfLiteEvalTensor* eval_tensor, size_t* out_bytes) {
  *out_bytes = 0;
  const uint32_t element_bits = TfLiteTypeGetSizeBits(eval_tensor->type);
  uint32_t elements = 1;
  for (int i = 0; i < eval_tensor->dims->size; ++i) {
    const int dim = eval_tensor->dims->data[i];
    if (dim < 0) return kTfLiteError;
    const uint64_t product = static_cast<uint64_t>(elements) * static_cast<uint32_t>(dim);
    if (product > kMaxPlannedBytes) return kTfLiteError;
    elements = static_cast<uint32_t>(product);
  }
  const uint64_t bytes = (static_cast<uint64_t>(elements) * element_bits + 7) / 8;
  if (element_bits == 0 || bytes > kMaxPlannedBytes) return kTfLiteError;
  *out_bytes = static_cast<size_t>(bytes);
  return kTfLiteOk;
}

}  // namespace tflite
