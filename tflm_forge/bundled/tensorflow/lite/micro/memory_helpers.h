#ifndef TENSORFLOW_LITE_MICRO_MEMORY_HELPERS_H_
#define TENSORFLOW_LITE_MICRO_MEMORY_HELPERS_H_

#include <cstddef>

#include "tensorflow/lite/c/common.h"

namespace tflite {

// Bytes of one element. An error for types that do not fill whole bytes or have no fixed size.
TfLiteStatus TfLiteTypeSizeOf(TfLiteType type, size_t* size);

// Bytes of the tensor's data. An error when a dimension is negative, when the type has no fixed
// size, and when the result is larger than any arena.
TfLiteStatus TfLiteEvalTensorByteLength(const TfLiteEvalTensor* eval_tensor, size_t* out_bytes);

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MEMORY_HELPERS_H_
