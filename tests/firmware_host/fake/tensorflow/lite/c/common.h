// As much of TFLM's types as the firmware uses, for tests of the firmware without a runtime.
#pragma once

#include <cstddef>
#include <cstdint>

enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };

enum TfLiteType {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteBool = 6,
  kTfLiteInt8 = 9,
};

struct TfLiteIntArray {
  int size;
  int data[4];
};

union TfLitePtrUnion {
  float* f;
  char* raw;
  uint8_t* uint8;
  void* data;
};

struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
};

struct TfLiteTensor {
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteQuantizationParams params;
  size_t bytes;
  TfLiteType type;
};

struct TfLiteEvalTensor {
  TfLitePtrUnion data;
  int index;  // of the fake alone
};

struct TfLiteContext;
struct TfLiteNode;

struct TFLMRegistration {
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
};
