#ifndef TENSORFLOW_LITE_MICRO_KERNELS_MICRO_OPS_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_MICRO_OPS_H_

#include "tensorflow/lite/micro/micro_common.h"

namespace tflite {

TFLMRegistration Register_ADD();
TFLMRegistration Register_AVERAGE_POOL_2D();
TFLMRegistration Register_CONV_2D();
TFLMRegistration Register_DEPTHWISE_CONV_2D();
TFLMRegistration Register_DEQUANTIZE();
TFLMRegistration Register_FULLY_CONNECTED();
TFLMRegistration Register_LOGISTIC();
TFLMRegistration Register_MAX_POOL_2D();
TFLMRegistration Register_QUANTIZE();
TFLMRegistration Register_RELU();
TFLMRegistration Register_RELU6();
TFLMRegistration Register_RESHAPE();
TFLMRegistration Register_SOFTMAX();

// For models whose uses of the op are all int8: they link no float code.
TFLMRegistration Register_ADD_INT8();
TFLMRegistration Register_AVERAGE_POOL_2D_INT8();
TFLMRegistration Register_CONV_2D_INT8();
TFLMRegistration Register_DEPTHWISE_CONV_2D_INT8();
TFLMRegistration Register_FULLY_CONNECTED_INT8();
TFLMRegistration Register_MAX_POOL_2D_INT8();
TFLMRegistration Register_SOFTMAX_INT8();

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_MICRO_OPS_H_
