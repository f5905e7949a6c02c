#pragma once

#include "tensorflow/lite/c/common.h"

namespace tflite {

enum BuiltinOperator : int32_t { BuiltinOperator_CUSTOM = 32 };

class MicroOpResolver {
 public:
  virtual const TFLMRegistration* FindOp(BuiltinOperator op) const = 0;
  virtual const TFLMRegistration* FindOp(const char* custom_name) const = 0;

 protected:
  ~MicroOpResolver() = default;
};

}  // namespace tflite
