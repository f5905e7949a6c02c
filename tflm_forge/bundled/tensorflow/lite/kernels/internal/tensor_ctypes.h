#ifndef TENSORFLOW_LITE_KERNELS_INTERNAL_TENSOR_CTYPES_H_
#define TENSORFLOW_LITE_KERNELS_INTERNAL_TENSOR_CTYPES_H_

#include "tensorflow/lite/core/c/common.h"
#include "tensorflow/lite/kernels/internal/types.h"

namespace tflite {

template <typename T>
inline T* GetTensorData(TfLiteTensor* tensor) {
  return tensor == nullptr ? nullptr : reinterpret_cast<T*>(tensor->data.raw);
}

template <typename T>
inline const T* GetTensorData(const TfLiteTensor* tensor) {
  return tensor == nullptr ? nullptr : reinterpret_cast<const T*>(tensor->data.raw);
}

inline RuntimeShape GetTensorShape(const TfLiteTensor* tensor) {
  if (tensor == nullptr || tensor->dims == nullptr) return RuntimeShape();
  return RuntimeShape(tensor->dims->size, reinterpret_cast<const int32_t*>(tensor->dims->data));
}

}  // namespace tflite

#endif  // TENSORFLOW_LITE_KERNELS_INTERNAL_TENSOR_CTYPES_H_
