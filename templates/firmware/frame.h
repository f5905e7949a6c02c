// Frames of the serial link: 0x00 COBS(type, sequence, body, CRC-32) 0x00. See docs/link.md.
#pragma once

#include <cstdint>

#include "forge_config.h"

namespace forge {

constexpr uint32_t kHeaderBytes = 2;  // type and sequence
constexpr uint32_t kCrcBytes = 4;
constexpr uint32_t kFrameBytes = kHeaderBytes + kLinkMtu + kCrcBytes;

// Writes a frame to the UART. `frame` holds type, sequence and body, `length` bytes, and has room
// for kCrcBytes more.
void SendFrame(uint8_t* frame, uint32_t length);

// Takes bytes as they come; what is not a whole frame with the right CRC is dropped in silence.
class FrameReceiver {
 public:
  // Returns true when this byte ended a good frame, which stays valid until the next call.
  bool Feed(uint8_t byte);

  const uint8_t* frame() const { return bytes_; }

  // Bytes of type, sequence and body.
  uint32_t length() const { return length_ - kCrcBytes; }

  uint32_t crc() const { return crc_; }

 private:
  void Put(uint8_t byte);
  bool EndFrame();
  void Restart();

  // Small fields first: what is near costs less code.
  uint8_t block_left_ = 0;     // bytes of the COBS block that are still to come
  bool zero_follows_ = false;  // the block ends with a zero, unless the frame ends first
  bool overflow_ = false;
  bool ended_ = false;  // the next byte starts another frame
  uint32_t length_ = 0;
  uint32_t crc_ = 0;
  uint8_t bytes_[kFrameBytes] = {};
};

}  // namespace forge
