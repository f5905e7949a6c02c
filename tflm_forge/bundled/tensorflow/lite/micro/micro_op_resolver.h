#ifndef TENSORFLOW_LITE_MICRO_MICRO_OP_RESOLVER_H_
#define TENSORFLOW_LITE_MICRO_MICRO_OP_RESOLVER_H_

#include "tensorflow/lite/micro/micro_common.h"
#include "tensorflow/lite/micro/model_reader.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace tflite {

// How to fill `TfLiteNode::builtin_data` of an op; null when the op has no parameters.
using TfLiteBridgeBuiltinParseFunction = const OptionsLayout*;

class MicroOpResolver {
 public:
  // Null when the op is not registered.
  virtual const TFLMRegistration* FindOp(BuiltinOperator op) const = 0;
  virtual const TFLMRegistration* FindOp(const char* custom_name) const = 0;
  virtual TfLiteBridgeBuiltinParseFunction GetOpDataParser(BuiltinOperator op) const = 0;

 protected:
  // Not virtual: a resolver in static memory needs no code for the end of the program.
  ~MicroOpResolver() = default;
};

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MICRO_OP_RESOLVER_H_
