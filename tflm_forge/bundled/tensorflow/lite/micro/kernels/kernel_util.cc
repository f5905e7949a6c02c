#include "tensorflow/lite/micro/kernels/kernel_util.h"

#include <cstring>

namespace tflite {
namespace micro {

TfLiteEvalTensor* GetMutableEvalInput(const TfLiteContext* context, const TfLiteNode* node,
                                      int index) {
  if (index < 0 || index >= node->inputs->size) return nullptr;
  const int tensor = node->inputs->data[index];
  return tensor == kTfLiteOptionalTensor ? nullptr : context->GetEvalTensor(context, tensor);
}

const TfLiteEvalTensor* GetEvalInput(const TfLiteContext* context, const TfLiteNode* node,
                                     int index) {
  return GetMutableEvalInput(context, node, index);
}

TfLiteEvalTensor* GetEvalOutput(const TfLiteContext* context, const TfLiteNode* node, int index) {
  return context->GetEvalTensor(context, node->outputs->data[index]);
}

bool HaveSameShapes(const TfLiteEvalTensor* input1, const TfLiteEvalTensor* input2) {
  return TfLiteIntArrayEqual(input1->dims, input2->dims) != 0;
}

PaddingType RuntimePaddingType(TfLitePadding padding) {
  switch (padding) {
    case kTfLitePaddingSame:
      return PaddingType::kSame;
    case kTfLitePaddingValid:
      return PaddingType::kValid;
    default:
      return PaddingType::kNone;
  }
}

TfLiteStatus CreateWritableTensorDimsWithCopy(TfLiteContext* context, TfLiteTensor* tensor,
                                              TfLiteEvalTensor* eval_tensor) {
  TF_LITE_ENSURE(context, tensor != nullptr && eval_tensor != nullptr);
  const size_t bytes = TfLiteIntArrayGetSizeInBytes(tensor->dims->size);
  void* dims = context->AllocatePersistentBuffer(context, bytes);
  TF_LITE_ENSURE(context, dims != nullptr);
  memcpy(dims, tensor->dims, bytes);
  tensor->dims = eval_tensor->dims = static_cast<TfLiteIntArray*>(dims);
  return kTfLiteOk;
}

}  // namespace micro
}  // namespace tflite
