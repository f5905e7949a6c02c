#include "frame.h"

#include <cstring>

#include "board.h"
#include "crc32.h"

namespace forge {
namespace {

constexpr uint8_t kDelimiter = 0;
constexpr uint8_t kFullBlock = 0xFF;  // code of a block of 254 bytes that no zero follows

}  // namespace

void SendFrame(uint8_t* frame, uint32_t length) {
  const uint32_t crc = Crc32(0, frame, length);
  std::memcpy(frame + length, &crc, kCrcBytes);
  length += kCrcBytes;
  UartWrite(&kDelimiter, 1);
  uint32_t start = 0;
  bool more = true;
  while (more) {
    uint32_t end = start;
    while (end < length && frame[end] != 0 && end - start < kFullBlock - 1u) ++end;
    const uint8_t code = static_cast<uint8_t>(end - start + 1);
    UartWrite(&code, 1);
    UartWrite(frame + start, end - start);
    more = end < length;
    start = code == kFullBlock ? end : end + 1;
  }
  UartWrite(&kDelimiter, 1);
}

bool FrameReceiver::Feed(uint8_t byte) {
  if (ended_) Restart();
  if (byte == kDelimiter) return EndFrame();
  if (block_left_ != 0) {
    --block_left_;
    Put(byte);
    return false;
  }
  if (zero_follows_) Put(0);
  block_left_ = static_cast<uint8_t>(byte - 1);
  zero_follows_ = byte != kFullBlock;
  return false;
}

bool FrameReceiver::EndFrame() {
  ended_ = true;
  if (block_left_ != 0 || overflow_ || length_ < kHeaderBytes + kCrcBytes) return false;
  std::memcpy(&crc_, bytes_ + length(), kCrcBytes);
  return crc_ == Crc32(0, bytes_, length());
}

__attribute__((noinline)) void FrameReceiver::Put(uint8_t byte) {
  if (length_ == kFrameBytes) {
    overflow_ = true;
  } else {
    bytes_[length_++] = byte;
  }
}

void FrameReceiver::Restart() {
  length_ = 0;
  block_left_ = 0;
  zero_follows_ = false;
  overflow_ = false;
  ended_ = false;
}

}  // namespace forge
