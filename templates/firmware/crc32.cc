#include "crc32.h"

namespace forge {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;
constexpr uint32_t kBitsOfByte = 8;

}  // namespace

// A bit at a time, without a table: some 30 instructions a byte, which is still far above the speed
// of a serial line.
uint32_t Crc32(uint32_t crc, const void* data, uint32_t length) {
  const uint8_t* bytes = static_cast<const uint8_t*>(data);
  crc = ~crc;
  for (uint32_t i = 0; i < length; ++i) {
    crc ^= bytes[i];
    for (uint32_t bit = 0; bit < kBitsOfByte; ++bit) crc = (crc >> 1) ^ (kPolynomial & -(crc & 1));
  }
  return ~crc;
}

}  // namespace forge
