#ifndef TENSORFLOW_LITE_MICRO_FLATBUFFER_UTILS_H_
#define TENSORFLOW_LITE_MICRO_FLATBUFFER_UTILS_H_

#include <cstddef>
#include <cstdint>

#include "flatbuffers/flexbuffers.h"

namespace tflite {

// A custom op's options by number: the values of a map in the order of its keys' bytes. TFLM's
// class of this name takes integers and bools of 64 bits and doubles alone; here any width will do.
class FlexbufferWrapper : public flexbuffers::Vector {
 public:
  explicit FlexbufferWrapper(const uint8_t* buffer, size_t size)
      : flexbuffers::Vector(flexbuffers::GetRoot(buffer, size).AsVector()) {}
  int64_t ElementAsInt64(size_t i) const { return (*this)[i].AsInt64(); }
  uint64_t ElementAsUInt64(size_t i) const { return (*this)[i].AsUInt64(); }
  int32_t ElementAsInt32(size_t i) const { return (*this)[i].AsInt32(); }
  bool ElementAsBool(size_t i) const { return (*this)[i].AsBool(); }
  double ElementAsDouble(size_t i) const { return (*this)[i].AsDouble(); }
  float ElementAsFloat(size_t i) const { return (*this)[i].AsFloat(); }
};

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_FLATBUFFER_UTILS_H_
