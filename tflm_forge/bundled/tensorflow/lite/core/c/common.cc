#include "tensorflow/lite/core/c/common.h"

extern "C" {

size_t TfLiteIntArrayGetSizeInBytes(int size) {
  return sizeof(TfLiteIntArray) + sizeof(int) * static_cast<size_t>(size);
}

int TfLiteFloatArrayGetSizeInBytes(int size) {
  return static_cast<int>(sizeof(TfLiteFloatArray)) + static_cast<int>(sizeof(float)) * size;
}

int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int b_size, const int b_data[]) {
  if (a == nullptr || a->size != b_size) return a == nullptr && b_size == 0;
  for (int i = 0; i < b_size; ++i) {
    if (a->data[i] != b_data[i]) return 0;
  }
  return 1;
}

int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b) {
  if (a == b) return 1;
  if (a == nullptr || b == nullptr) return 0;
  return TfLiteIntArrayEqualsArray(a, b->size, b->data);
}

const char* TfLiteTypeGetName(TfLiteType type) {
  static constexpr char kNames[] =
      "NOTYPE\0FLOAT32\0INT32\0UINT8\0INT64\0STRING\0BOOL\0INT16\0COMPLEX64\0INT8\0FLOAT16\0"
      "FLOAT64\0COMPLEX128\0UINT64\0RESOURCE\0VARIANT\0UINT32\0UINT16\0INT4\0BFLOAT16\0INT2\0"
      "UINT4\0FLOAT8_E4M3FN\0FLOAT8_E5M2\0";
  if (type > kTfLiteFloat8E5M2) return "Unknown type";
  const char* name = kNames;
  for (int i = 0; i < static_cast<int>(type); ++i) {
    while (*name != 0) ++name;
    ++name;
  }
  return name;
}

}  // extern "C"
