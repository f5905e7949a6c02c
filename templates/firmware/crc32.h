// CRC-32 as zlib computes it: polynomial 0xEDB88320, reflected.
#pragma once

#include <cstdint>

namespace forge {

// Returns the CRC of the bytes that gave `crc` followed by these; `crc` is 0 at the start.
uint32_t Crc32(uint32_t crc, const void* data, uint32_t length);

}  // namespace forge
