#ifndef TENSORFLOW_LITE_PORTABLE_TYPE_TO_TFLITETYPE_H_
#define TENSORFLOW_LITE_PORTABLE_TYPE_TO_TFLITETYPE_H_

#include <cstdint>

#include "tensorflow/lite/core/c/common.h"

namespace tflite {

// kTfLiteInt8 for int8_t, and so on; kTfLiteNoType for what a tensor can not hold.
template <typename T>
constexpr TfLiteType typeToTfLiteType() {
  return kTfLiteNoType;
}
template <>
constexpr TfLiteType typeToTfLiteType<float>() {
  return kTfLiteFloat32;
}
template <>
constexpr TfLiteType typeToTfLiteType<bool>() {
  return kTfLiteBool;
}
template <>
constexpr TfLiteType typeToTfLiteType<int8_t>() {
  return kTfLiteInt8;
}
template <>
constexpr TfLiteType typeToTfLiteType<uint8_t>() {
  return kTfLiteUInt8;
}
template <>
constexpr TfLiteType typeToTfLiteType<int16_t>() {
  return kTfLiteInt16;
}
template <>
constexpr TfLiteType typeToTfLiteType<uint16_t>() {
  return kTfLiteUInt16;
}
template <>
constexpr TfLiteType typeToTfLiteType<int32_t>() {
  return kTfLiteInt32;
}
template <>
constexpr TfLiteType typeToTfLiteType<uint32_t>() {
  return kTfLiteUInt32;
}
template <>
constexpr TfLiteType typeToTfLiteType<int64_t>() {
  return kTfLiteInt64;
}

}  // namespace tflite

#endif  // TENSORFLOW_LITE_PORTABLE_TYPE_TO_TFLITETYPE_H_
