#include "message.h"

#include <cstring>

namespace forge {
namespace {

constexpr uint32_t kListHeadBytes = 3;

}  // namespace

uint8_t BodyReader::Get8() { return static_cast<uint8_t>(Get(1)); }

uint16_t BodyReader::Get16() { return static_cast<uint16_t>(Get(2)); }

uint32_t BodyReader::Get32() { return Get(4); }

uint32_t BodyReader::Get(uint32_t bytes) {
  short_ = short_ || bytes > left_;
  if (short_) return 0;
  uint32_t value = 0;
  std::memcpy(&value, data_, bytes);
  data_ += bytes;
  left_ -= bytes;
  return value;
}

void BodyWriter::Put8(uint8_t value) { PutBytes(&value, sizeof(value)); }

void BodyWriter::Put16(uint16_t value) { PutBytes(&value, sizeof(value)); }

void BodyWriter::Put32(uint32_t value) { PutBytes(&value, sizeof(value)); }

void BodyWriter::Put64(uint64_t value) { PutBytes(&value, sizeof(value)); }

void BodyWriter::PutFloat(float value) { PutBytes(&value, sizeof(value)); }

void BodyWriter::PutBytes(const void* bytes, uint32_t length) {
  if (length > left_) return;
  std::memcpy(data_, bytes, length);
  data_ += length;
  left_ -= length;
}

void BodyWriter::PutString(const char* text) {
  if (left_ == 0) return;
  uint32_t length = static_cast<uint32_t>(std::strlen(text));
  if (length > left_ - 1) length = left_ - 1;
  if (length > UINT8_MAX) length = UINT8_MAX;
  Put8(static_cast<uint8_t>(length));
  PutBytes(text, length);
}

ListHead::ListHead(BodyWriter& out) : position_(out.end()) {
  const uint8_t room[kListHeadBytes] = {};
  out.PutBytes(room, kListHeadBytes);
}

void ListHead::Write(uint32_t total, uint32_t count) {
  BodyWriter head(position_, kListHeadBytes);
  head.Put16(static_cast<uint16_t>(total));
  head.Put8(static_cast<uint8_t>(count));
}

}  // namespace forge
