#ifndef FLATBUFFERS_FLEXBUFFERS_H_
#define FLATBUFFERS_FLEXBUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

// Reads flexbuffers, the form that converters give a custom op's options. The names are those of
// Google's flexbuffers.h, so that a kernel compiles with either; what is here is the part that
// reads scalars, strings, vectors and maps. Each access stays inside the buffer: what leads
// out of it, or is of another kind, reads as null, 0 or empty.
//
// The format: https://flatbuffers.dev/internals/#flexbuffers
namespace flexbuffers {

enum BitWidth : uint8_t { BIT_WIDTH_8 = 0, BIT_WIDTH_16 = 1, BIT_WIDTH_32 = 2, BIT_WIDTH_64 = 3 };

enum Type : uint8_t {
  FBT_NULL = 0,
  FBT_INT = 1,
  FBT_UINT = 2,
  FBT_FLOAT = 3,
  FBT_KEY = 4,
  FBT_STRING = 5,
  FBT_INDIRECT_INT = 6,
  FBT_INDIRECT_UINT = 7,
  FBT_INDIRECT_FLOAT = 8,
  FBT_MAP = 9,
  FBT_VECTOR = 10,
  FBT_VECTOR_INT = 11,
  FBT_VECTOR_UINT = 12,
  FBT_VECTOR_FLOAT = 13,
  FBT_VECTOR_KEY = 14,
  FBT_VECTOR_STRING_DEPRECATED = 15,
  FBT_VECTOR_INT2 = 16,
  FBT_VECTOR_FLOAT4 = 24,
  FBT_BLOB = 25,
  FBT_BOOL = 26,
  FBT_VECTOR_BOOL = 36,
};

// A stretch of the buffer with all of the buffer around it: elements and offsets are `width` bytes.
struct Span {
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;
  const uint8_t* at = nullptr;
  uint8_t width = 1;

  bool Holds(const uint8_t* place, uint64_t bytes) const {
    return place != nullptr && place >= begin && place <= end &&
           bytes <= static_cast<uint64_t>(end - place);
  }
  // Widths are 1, 2, 4 and 8; anything else, and what lies outside, reads as 0.
  uint64_t ReadUInt(const uint8_t* place, uint8_t bytes) const {
    uint64_t value = 0;
    if (Holds(place, bytes) && bytes <= sizeof(value)) memcpy(&value, place, bytes);
    return value;
  }
  float ReadSingle(const uint8_t* place, uint8_t bytes) const {
    const auto bits = static_cast<uint32_t>(bytes == sizeof(float) ? ReadUInt(place, bytes) : 0);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }
  int64_t ReadInt(const uint8_t* place, uint8_t bytes) const {
    const int unused = 64 - 8 * bytes;
    return static_cast<int64_t>(ReadUInt(place, bytes) << unused) >> unused;
  }
  double ReadDouble(const uint8_t* place, uint8_t bytes) const {
    if (bytes != sizeof(double)) return static_cast<double>(ReadSingle(place, bytes));
    const uint64_t bits = ReadUInt(place, bytes);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }
  float ReadFloat(const uint8_t* place, uint8_t bytes) const {
    return bytes == sizeof(double) ? static_cast<float>(ReadDouble(place, bytes))
                                   : ReadSingle(place, bytes);
  }
  // A float or double without what stands behind the point; 0 when it is out of range. The
  // library's conversion takes a kilobyte where there is no hardware for doubles.
  int64_t Truncate(const uint8_t* place, uint8_t bytes) const {
    if (bytes != sizeof(double) && bytes != sizeof(float)) return 0;
    const int mantissa_bits = bytes == sizeof(double) ? 52 : 23;
    const uint32_t exponent_mask = bytes == sizeof(double) ? 0x7FF : 0xFF;
    const uint64_t bits = ReadUInt(place, bytes);
    const int exponent = static_cast<int>((bits >> mantissa_bits) & exponent_mask) -
                         static_cast<int>(exponent_mask >> 1);
    if (exponent < 0 || exponent > 62) return 0;
    const uint64_t hidden = uint64_t{1} << mantissa_bits;
    const uint64_t mantissa = (bits & (hidden - 1)) | hidden;
    const int64_t value =
        static_cast<int64_t>(exponent > mantissa_bits ? mantissa << (exponent - mantissa_bits)
                                                      : mantissa >> (mantissa_bits - exponent));
    return (bits >> (8 * bytes - 1)) != 0 ? -value : value;
  }
  // Where an offset leads: it counts backwards. Null when it leads out of the buffer.
  const uint8_t* Follow(const uint8_t* place, uint8_t bytes) const {
    if (!Holds(place, bytes)) return nullptr;
    const uint64_t back = ReadUInt(place, bytes);
    return back > static_cast<uint64_t>(place - begin) ? nullptr : place - back;
  }
};

class Reference;

// What has elements: their count stands before the first one.
class Sized {
 public:
  explicit Sized(const Span& span) : Sized(span, span.width) {}
  size_t size() const {
    const uint8_t* place = Before(1);
    if (place == nullptr) return 0;
    const uint64_t count = span_.ReadUInt(place, span_.width);
    const uint64_t room = static_cast<uint64_t>(span_.end - span_.at);
    return count > room || count * element_width_ > room ? 0 : static_cast<size_t>(count);
  }

 protected:
  Sized(const Span& span, uint8_t element_width) : span_(span), element_width_(element_width) {}

  // The place of so many words before the first element; null when it is outside.
  const uint8_t* Before(int words) const {
    const ptrdiff_t back = words * span_.width;
    if (span_.at == nullptr || span_.at - span_.begin < back) return nullptr;
    return span_.at - back;
  }

  Span span_;

 private:
  uint8_t element_width_;
};

class String : public Sized {
 public:
  explicit String(const Span& span) : Sized(span, 1) {}
  size_t length() const { return size(); }
  // Ends with a zero; empty when the buffer's string does not.
  const char* c_str() const {
    const size_t bytes = size();
    const bool ends = span_.Holds(span_.at, static_cast<uint64_t>(bytes) + 1);
    return ends && span_.at[bytes] == 0 ? reinterpret_cast<const char*>(span_.at) : "";
  }
};

class Blob : public Sized {
 public:
  explicit Blob(const Span& span) : Sized(span, 1) {}
  const uint8_t* data() const { return span_.at; }
};

class Vector : public Sized {
 public:
  explicit Vector(const Span& span) : Sized(span) {}
  inline Reference operator[](size_t i) const;
  static Vector EmptyVector() { return Vector(Span()); }
};

// A vector whose elements all have one type, which is not kept with each.
class TypedVector : public Sized {
 public:
  TypedVector(const Span& span, Type type) : Sized(span), type_(type) {}
  inline Reference operator[](size_t i) const;
  Type ElementType() const { return type_; }
  static TypedVector EmptyTypedVector() { return TypedVector(Span(), FBT_INT); }

 private:
  Type type_;
};

// Keys in the order of their bytes, and the values in the same order.
class Map : public Vector {
 public:
  explicit Map(const Span& span) : Vector(span) {}
  inline Reference operator[](const char* key) const;
  inline TypedVector Keys() const;
  Vector Values() const { return Vector(span_); }
  bool IsTheEmptyMap() const { return size() == 0; }
  static Map EmptyMap() { return Map(Span()); }
};

// One value. `span.at` is where it, or the offset to it, is kept in `span.width` bytes.
class Reference {
 public:
  Reference() : type_(FBT_NULL), byte_width_(1) {}
  Reference(const Span& span, uint8_t packed_type)
      : span_(span),
        type_(static_cast<Type>(packed_type >> 2)),
        byte_width_(1 << (packed_type & 3)) {}
  Reference(const Span& span, Type type) : span_(span), type_(type), byte_width_(1) {}

  Type GetType() const { return type_; }
  bool IsNull() const { return type_ == FBT_NULL; }
  bool IsBool() const { return type_ == FBT_BOOL; }
  bool IsInt() const { return type_ == FBT_INT || type_ == FBT_INDIRECT_INT; }
  bool IsUInt() const { return type_ == FBT_UINT || type_ == FBT_INDIRECT_UINT; }
  bool IsIntOrUint() const { return IsInt() || IsUInt(); }
  bool IsFloat() const { return type_ == FBT_FLOAT || type_ == FBT_INDIRECT_FLOAT; }
  bool IsNumeric() const { return IsIntOrUint() || IsFloat(); }
  bool IsString() const { return type_ == FBT_STRING; }
  bool IsKey() const { return type_ == FBT_KEY; }
  bool IsVector() const { return type_ == FBT_VECTOR || type_ == FBT_MAP; }
  bool IsUntypedVector() const { return type_ == FBT_VECTOR; }
  bool IsTypedVector() const {
    return (type_ >= FBT_VECTOR_INT && type_ <= FBT_VECTOR_KEY) || type_ == FBT_VECTOR_BOOL;
  }
  bool IsMap() const { return type_ == FBT_MAP; }
  bool IsBlob() const { return type_ == FBT_BLOB; }

  bool AsBool() const { return AsInt64() != 0; }
  int64_t AsInt64() const {
    const uint8_t* place = Scalar();
    const uint8_t bytes = ScalarWidth();
    if (IsFloat()) return span_.Truncate(place, bytes);
    if (IsUInt() || IsBool()) return static_cast<int64_t>(span_.ReadUInt(place, bytes));
    return IsInt() ? span_.ReadInt(place, bytes) : 0;
  }
  int32_t AsInt32() const { return static_cast<int32_t>(AsInt64()); }
  int16_t AsInt16() const { return static_cast<int16_t>(AsInt64()); }
  int8_t AsInt8() const { return static_cast<int8_t>(AsInt64()); }
  uint64_t AsUInt64() const { return static_cast<uint64_t>(AsInt64()); }
  uint32_t AsUInt32() const { return static_cast<uint32_t>(AsInt64()); }
  uint16_t AsUInt16() const { return static_cast<uint16_t>(AsInt64()); }
  uint8_t AsUInt8() const { return static_cast<uint8_t>(AsInt64()); }
  double AsDouble() const {
    if (IsFloat()) return span_.ReadDouble(Scalar(), ScalarWidth());
    return IsUInt() ? static_cast<double>(AsUInt64()) : static_cast<double>(AsInt64());
  }
  float AsFloat() const {
    if (IsFloat()) return span_.ReadFloat(Scalar(), ScalarWidth());
    return IsUInt() ? static_cast<float>(AsUInt64()) : static_cast<float>(AsInt64());
  }

  String AsString() const { return String(type_ == FBT_STRING ? Target(byte_width_) : Span()); }
  const char* AsKey() const {
    if (type_ == FBT_STRING) return AsString().c_str();
    const Span key = Target(byte_width_);
    const bool ends = type_ == FBT_KEY && key.at != nullptr &&
                      memchr(key.at, 0, static_cast<size_t>(key.end - key.at)) != nullptr;
    return ends ? reinterpret_cast<const char*>(key.at) : "";
  }
  Blob AsBlob() const {
    const bool has_bytes = type_ == FBT_BLOB || type_ == FBT_STRING;
    return Blob(has_bytes ? Target(byte_width_) : Span());
  }
  Vector AsVector() const { return Vector(IsVector() ? Target(byte_width_) : Span()); }
  Map AsMap() const { return Map(IsMap() ? Target(byte_width_) : Span()); }
  TypedVector AsTypedVector() const {
    if (!IsTypedVector()) return TypedVector::EmptyTypedVector();
    const Type element =
        type_ == FBT_VECTOR_BOOL ? FBT_BOOL : static_cast<Type>(type_ - FBT_VECTOR_INT + FBT_INT);
    return TypedVector(Target(byte_width_), element);
  }

 private:
  bool IsIndirect() const { return type_ >= FBT_INDIRECT_INT && type_ <= FBT_INDIRECT_FLOAT; }
  const uint8_t* Scalar() const {
    return IsIndirect() ? span_.Follow(span_.at, span_.width) : span_.at;
  }
  uint8_t ScalarWidth() const { return IsIndirect() ? byte_width_ : span_.width; }
  Span Target(uint8_t width) const {
    Span target = span_;
    target.at = span_.Follow(span_.at, span_.width);
    target.width = width;
    return target.at == nullptr ? Span() : target;
  }
  Span span_;
  Type type_;
  uint8_t byte_width_;
};

// The types of the elements stand behind the last one, a byte each.
inline Reference Vector::operator[](size_t i) const {
  const size_t count = size();
  if (i >= count) return Reference();
  Span element = span_;
  element.at = span_.at + i * span_.width;
  const uint8_t* type = span_.at + count * span_.width + i;
  return span_.Holds(type, 1) ? Reference(element, *type) : Reference();
}

inline Reference TypedVector::operator[](size_t i) const {
  if (i >= size()) return Reference();
  Span element = span_;
  element.at = span_.at + i * span_.width;
  return Reference(element, type_);
}

// Before the count stand the offset of the keys and their width.
inline TypedVector Map::Keys() const {
  const uint8_t* offset = Before(3);
  const uint8_t* width = Before(2);
  if (offset == nullptr || width == nullptr) return TypedVector::EmptyTypedVector();
  Span keys = span_;
  keys.at = span_.Follow(offset, span_.width);
  const uint64_t bytes = span_.ReadUInt(width, span_.width);
  if (keys.at == nullptr || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) {
    return TypedVector::EmptyTypedVector();
  }
  keys.width = static_cast<uint8_t>(bytes);
  return TypedVector(keys, FBT_KEY);
}

// Options are few: looking at each key takes less code than searching in halves.
inline Reference Map::operator[](const char* key) const {
  const TypedVector keys = Keys();
  const size_t count = keys.size();
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(keys[i].AsKey(), key) == 0) return Vector::operator[](i);
  }
  return Reference();
}

// The last byte is the width of the root, the one before it its type.
inline Reference GetRoot(const uint8_t* buffer, size_t size) {
  if (buffer == nullptr || size < 3) return Reference();
  Span root;
  root.begin = buffer;
  root.end = buffer + size - 2;
  root.width = buffer[size - 1];
  if (root.width != 1 && root.width != 2 && root.width != 4 && root.width != 8) return Reference();
  if (size - 2 < root.width) return Reference();
  root.at = root.end - root.width;
  return Reference(root, buffer[size - 2]);
}

}  // namespace flexbuffers

#endif  // FLATBUFFERS_FLEXBUFFERS_H_
