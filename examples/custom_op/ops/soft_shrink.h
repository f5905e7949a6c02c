// Kernel of the custom op SoftShrink.
#pragma once

#include "tensorflow/lite/micro/micro_common.h"

namespace tflite {

TFLMRegistration Register_SOFT_SHRINK();

}  // namespace tflite
