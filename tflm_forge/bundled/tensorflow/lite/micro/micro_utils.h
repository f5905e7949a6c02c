#ifndef TENSORFLOW_LITE_MICRO_MICRO_UTILS_H_
#define TENSORFLOW_LITE_MICRO_MICRO_UTILS_H_

#include <cstddef>

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/memory_helpers.h"

namespace tflite {

inline int ElementCount(const TfLiteIntArray& dims) {
  int count = 1;
  for (int i = 0; i < dims.size; ++i) count *= dims.data[i];
  return count;
}

inline size_t EvalTensorBytes(const TfLiteEvalTensor* tensor) {
  size_t bytes = 0;
  return TfLiteEvalTensorByteLength(tensor, &bytes) == kTfLiteOk ? bytes : 0;
}

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MICRO_UTILS_H_
