// Text to the serial port, between the frames of the link.
#pragma once

namespace forge {

// Knows %s %c %d %i %u %x %X %p %f and %%, the lengths h, l, ll, z and t, the flags 0 and -, width
// and precision. Any other conversion is written as it stands.
void Print(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace forge
