#pragma once

#include "forge_config.h"
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"

namespace forge {

using OpResolver = tflite::MicroMutableOpResolver<kOpCount>;

struct RegisterResult {
  TfLiteStatus status;
  int failed_index;
};

RegisterResult RegisterOps(OpResolver& resolver);

}  // namespace forge
