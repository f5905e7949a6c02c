#ifndef TENSORFLOW_LITE_MICRO_KERNELS_KERNEL_UTIL_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_KERNEL_UTIL_H_

#include <cstdint>

#include "tensorflow/lite/c/builtin_op_data.h"
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/kernels/internal/compatibility.h"
#include "tensorflow/lite/kernels/internal/tensor_ctypes.h"
#include "tensorflow/lite/kernels/internal/types.h"
#include "tensorflow/lite/micro/micro_common.h"
#include "tensorflow/lite/micro/micro_context.h"

namespace tflite {
namespace micro {

inline TFLMRegistration RegisterOp(void* (*init)(TfLiteContext* context, const char* buffer,
                                                 size_t length),
                                   TfLiteStatus (*prepare)(TfLiteContext* context,
                                                           TfLiteNode* node),
                                   TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node),
                                   void (*free)(TfLiteContext* context, void* buffer) = nullptr,
                                   void (*reset)(TfLiteContext* context, void* buffer) = nullptr) {
  return {init, free, prepare, invoke, reset, 0, nullptr};
}

inline TFLMInferenceRegistration RegisterOp(TfLiteStatus (*invoke)(TfLiteContext* context,
                                                                   TfLiteNode* node),
                                            void (*reset)(TfLiteContext* context,
                                                          void* buffer) = nullptr) {
  return {invoke, reset};
}

// Null when the node has no such input or leaves it out.
TfLiteEvalTensor* GetMutableEvalInput(const TfLiteContext* context, const TfLiteNode* node,
                                      int index);
const TfLiteEvalTensor* GetEvalInput(const TfLiteContext* context, const TfLiteNode* node,
                                     int index);
TfLiteEvalTensor* GetEvalOutput(const TfLiteContext* context, const TfLiteNode* node, int index);

template <typename T>
T* GetTensorData(TfLiteEvalTensor* tensor) {
  TFLITE_DCHECK(tensor != nullptr);
  return reinterpret_cast<T*>(tensor->data.raw);
}

template <typename T>
const T* GetTensorData(const TfLiteEvalTensor* tensor) {
  TFLITE_DCHECK(tensor != nullptr);
  return reinterpret_cast<const T*>(tensor->data.raw);
}

template <typename T>
T* GetOptionalTensorData(TfLiteEvalTensor* tensor) {
  return tensor == nullptr ? nullptr : reinterpret_cast<T*>(tensor->data.raw);
}

template <typename T>
const T* GetOptionalTensorData(const TfLiteEvalTensor* tensor) {
  return tensor == nullptr ? nullptr : reinterpret_cast<const T*>(tensor->data.raw);
}

inline const RuntimeShape GetTensorShape(const TfLiteEvalTensor* tensor) {
  if (tensor == nullptr || tensor->dims == nullptr) return RuntimeShape();
  return RuntimeShape(tensor->dims->size, reinterpret_cast<const int32_t*>(tensor->dims->data));
}

bool HaveSameShapes(const TfLiteEvalTensor* input1, const TfLiteEvalTensor* input2);

PaddingType RuntimePaddingType(TfLitePadding padding);

// Gives the tensor its own dims, in the arena, for a kernel that is to change them.
TfLiteStatus CreateWritableTensorDimsWithCopy(TfLiteContext* context, TfLiteTensor* tensor,
                                              TfLiteEvalTensor* eval_tensor);

}  // namespace micro
}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_KERNEL_UTIL_H_
