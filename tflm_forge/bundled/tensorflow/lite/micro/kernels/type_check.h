// Checks that kernels make before they prepare.

#ifndef TENSORFLOW_LITE_MICRO_KERNELS_TYPE_CHECK_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_TYPE_CHECK_H_

#include "tensorflow/lite/c/common.h"

namespace tflite {

// An error that names the type when `tensor` is not int8.
TfLiteStatus EnsureInt8(TfLiteContext* context, const TfLiteEvalTensor* tensor);

TfLiteStatus EnsureOneInputOneOutput(TfLiteContext* context, const TfLiteNode* node);

// One input and one output of the same number of elements.
TfLiteStatus EnsureElementwise(TfLiteContext* context, const TfLiteNode* node);

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_TYPE_CHECK_H_
