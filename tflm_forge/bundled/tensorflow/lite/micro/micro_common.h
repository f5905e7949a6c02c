#ifndef TENSORFLOW_LITE_MICRO_MICRO_COMMON_H_
#define TENSORFLOW_LITE_MICRO_MICRO_COMMON_H_

#include "tensorflow/lite/c/common.h"

struct TFLMRegistration {
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  void (*reset)(TfLiteContext* context, void* buffer);
  int32_t builtin_code;
  const char* custom_name;
};

struct TFLMInferenceRegistration {
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  void (*reset)(TfLiteContext* context, void* buffer);
};

#endif  // TENSORFLOW_LITE_MICRO_MICRO_COMMON_H_
