#ifndef TENSORFLOW_LITE_MICRO_MICRO_MUTABLE_OP_RESOLVER_H_
#define TENSORFLOW_LITE_MICRO_MICRO_MUTABLE_OP_RESOLVER_H_

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/compatibility.h"
#include "tensorflow/lite/micro/kernels/micro_ops.h"
#include "tensorflow/lite/micro/micro_log.h"
#include "tensorflow/lite/micro/micro_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace tflite {

// The ops an application has. Only the kernels of the ops that it adds are linked.
template <unsigned int tOpCount>
class MicroMutableOpResolver : public MicroOpResolver {
 public:
  TF_LITE_REMOVE_VIRTUAL_DELETE

  explicit MicroMutableOpResolver() {}

  const TFLMRegistration* FindOp(BuiltinOperator op) const override {
    if (op == BuiltinOperator_CUSTOM) return nullptr;
    const int index = IndexOf(op);
    return index < 0 ? nullptr : &registrations_[index];
  }

  const TFLMRegistration* FindOp(const char* custom_name) const override {
    for (unsigned int i = 0; i < count_; ++i) {
      const TFLMRegistration& registration = registrations_[i];
      if (registration.builtin_code == BuiltinOperator_CUSTOM &&
          IsSameName(registration.custom_name, custom_name)) {
        return &registration;
      }
    }
    return nullptr;
  }

  TfLiteBridgeBuiltinParseFunction GetOpDataParser(BuiltinOperator op) const override {
    const int index = IndexOf(op);
    return index < 0 ? nullptr : parsers_[index];
  }

  // `name` must live as long as the resolver.
  TfLiteStatus AddCustom(const char* name, const TFLMRegistration* registration) {
    if (count_ >= tOpCount) {
      MicroPrintf("Couldn't register custom op '%s', resolver size is too small (%d)", name,
                  tOpCount);
      return kTfLiteError;
    }
    if (FindOp(name) != nullptr) {
      MicroPrintf("Calling AddCustom for the same op more than once ");
      MicroPrintf("is not supported (Op: %s).", name);
      return kTfLiteError;
    }
    TFLMRegistration& added = Append(*registration, nullptr);
    added.builtin_code = BuiltinOperator_CUSTOM;
    added.custom_name = name;
    return kTfLiteOk;
  }

  TfLiteStatus AddAdd(const TFLMRegistration& registration = Register_ADD()) {
    return AddBuiltin(BuiltinOperator_ADD, registration, &kAddOptions);
  }
  TfLiteStatus AddAveragePool2D(const TFLMRegistration& registration = Register_AVERAGE_POOL_2D()) {
    return AddBuiltin(BuiltinOperator_AVERAGE_POOL_2D, registration, &kPool2DOptions);
  }
  TfLiteStatus AddConv2D(const TFLMRegistration& registration = Register_CONV_2D()) {
    return AddBuiltin(BuiltinOperator_CONV_2D, registration, &kConv2DOptions);
  }
  TfLiteStatus AddDepthwiseConv2D(
      const TFLMRegistration& registration = Register_DEPTHWISE_CONV_2D()) {
    return AddBuiltin(BuiltinOperator_DEPTHWISE_CONV_2D, registration, &kDepthwiseConv2DOptions);
  }
  TfLiteStatus AddDequantize(const TFLMRegistration& registration = Register_DEQUANTIZE()) {
    return AddBuiltin(BuiltinOperator_DEQUANTIZE, registration, nullptr);
  }
  TfLiteStatus AddFullyConnected(
      const TFLMRegistration& registration = Register_FULLY_CONNECTED()) {
    return AddBuiltin(BuiltinOperator_FULLY_CONNECTED, registration, &kFullyConnectedOptions);
  }
  TfLiteStatus AddLogistic(const TFLMRegistration& registration = Register_LOGISTIC()) {
    return AddBuiltin(BuiltinOperator_LOGISTIC, registration, nullptr);
  }
  TfLiteStatus AddMaxPool2D(const TFLMRegistration& registration = Register_MAX_POOL_2D()) {
    return AddBuiltin(BuiltinOperator_MAX_POOL_2D, registration, &kPool2DOptions);
  }
  TfLiteStatus AddQuantize(const TFLMRegistration& registration = Register_QUANTIZE()) {
    return AddBuiltin(BuiltinOperator_QUANTIZE, registration, nullptr);
  }
  TfLiteStatus AddRelu(const TFLMRegistration& registration = Register_RELU()) {
    return AddBuiltin(BuiltinOperator_RELU, registration, nullptr);
  }
  TfLiteStatus AddRelu6(const TFLMRegistration& registration = Register_RELU6()) {
    return AddBuiltin(BuiltinOperator_RELU6, registration, nullptr);
  }
  TfLiteStatus AddReshape(const TFLMRegistration& registration = Register_RESHAPE()) {
    return AddBuiltin(BuiltinOperator_RESHAPE, registration, nullptr);
  }
  TfLiteStatus AddSoftmax(const TFLMRegistration& registration = Register_SOFTMAX()) {
    return AddBuiltin(BuiltinOperator_SOFTMAX, registration, &kSoftmaxOptions);
  }

  unsigned int GetRegistrationLength() { return count_; }

 private:
  TfLiteStatus AddBuiltin(BuiltinOperator op, const TFLMRegistration& registration,
                          TfLiteBridgeBuiltinParseFunction parser) {
    if (FindOp(op) != nullptr) {
      MicroPrintf("Calling AddBuiltin with the same op more than ");
      MicroPrintf("once is not supported (Op: #%d).", op);
      return kTfLiteError;
    }
    if (count_ >= tOpCount) {
      MicroPrintf("Couldn't register builtin op #%d, resolver size ", op);
      MicroPrintf("is too small (%d).", tOpCount);
      return kTfLiteError;
    }
    Append(registration, parser).builtin_code = op;
    return kTfLiteOk;
  }

  TFLMRegistration& Append(const TFLMRegistration& registration,
                           TfLiteBridgeBuiltinParseFunction parser) {
    registrations_[count_] = registration;
    parsers_[count_] = parser;
    return registrations_[count_++];
  }

  // The library's strcmp, made for speed, takes several hundred bytes.
  static bool IsSameName(const char* a, const char* b) {
    while (*a != 0 && *a == *b) {
      ++a;
      ++b;
    }
    return *a == *b;
  }

  int IndexOf(BuiltinOperator op) const {
    for (unsigned int i = 0; i < count_; ++i) {
      if (registrations_[i].builtin_code == op) return static_cast<int>(i);
    }
    return -1;
  }

  TFLMRegistration registrations_[tOpCount];
  TfLiteBridgeBuiltinParseFunction parsers_[tOpCount];
  unsigned int count_ = 0;
};

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MICRO_MUTABLE_OP_RESOLVER_H_
