#pragma once

#include <cstring>

#include "tensorflow/lite/micro/micro_op_resolver.h"

namespace tflite {

template <unsigned int tOpCount>
class MicroMutableOpResolver final : public MicroOpResolver {
 public:
  const TFLMRegistration* FindOp(BuiltinOperator op) const override {
    for (unsigned int i = 0; i < count_; ++i) {
      if (op != BuiltinOperator_CUSTOM && registrations_[i].builtin_code == op) {
        return &registrations_[i];
      }
    }
    return nullptr;
  }

  const TFLMRegistration* FindOp(const char* custom_name) const override {
    for (unsigned int i = 0; i < count_; ++i) {
      const TFLMRegistration& registration = registrations_[i];
      if (registration.builtin_code == BuiltinOperator_CUSTOM &&
          std::strcmp(registration.custom_name, custom_name) == 0) {
        return &registration;
      }
    }
    return nullptr;
  }

  TfLiteStatus Add(const TFLMRegistration& registration) {
    if (count_ == tOpCount) return kTfLiteError;
    registrations_[count_++] = registration;
    return kTfLiteOk;
  }

  unsigned int GetRegistrationLength() { return count_; }

 private:
  TFLMRegistration registrations_[tOpCount];
  unsigned int count_ = 0;
};

}  // namespace tflite
