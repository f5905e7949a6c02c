// Reads and writes the bodies of frames: little-endian numbers, never outside the body.
#pragma once

#include <cstdint>

namespace forge {

class BodyReader {
 public:
  BodyReader(const uint8_t* data, uint32_t length) : data_(data), left_(length) {}

  // A number that is not there reads as 0, and Complete() tells.
  uint8_t Get8();
  uint16_t Get16();
  uint32_t Get32();

  const uint8_t* data() const { return data_; }
  uint32_t left() const { return left_; }

  // True when all that was asked for was there, and nothing more.
  bool Complete() const { return !short_ && left_ == 0; }
  bool IsShort() const { return short_; }

 private:
  uint32_t Get(uint32_t bytes);

  const uint8_t* data_;
  uint32_t left_;
  bool short_ = false;
};

class BodyWriter {
 public:
  BodyWriter(uint8_t* data, uint32_t capacity) : data_(data), left_(capacity) {}

  // What does not fit is left out.
  void Put8(uint8_t value);
  void Put16(uint16_t value);
  void Put32(uint32_t value);
  void Put64(uint64_t value);
  void PutFloat(float value);
  void PutBytes(const void* bytes, uint32_t length);

  // A text after its length in one byte; cut to what fits.
  void PutString(const char* text);

  uint8_t* end() { return data_; }
  uint32_t left() const { return left_; }

 private:
  uint8_t* data_;
  uint32_t left_;
};

// Head of an answer that lists items from an index on: how many there are, and how many of them
// follow.
class ListHead {
 public:
  explicit ListHead(BodyWriter& out);

  void Write(uint32_t total, uint32_t count);

 private:
  uint8_t* position_;
};

// One request and the answer to it.
struct Exchange {
  uint8_t type;
  BodyReader in;
  BodyWriter out;
  uint32_t detail;  // goes into the error answer when the request fails
};

}  // namespace forge
