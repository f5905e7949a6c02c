// Functions of the C library and of the compiler's own, written for size: the libraries' are
// written for speed, cost 1.8 KB together, and are called at boot only. The linker takes what it
// finds first.
#include <cstddef>
#include <cstdint>

extern "C" {

int strcmp(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
}

size_t strlen(const char* text) {
  const char* end = text;
  while (*end != '\0') ++end;
  return static_cast<size_t>(end - text);
}

// What 64-bit divisions come down to (libgcc's name and form); one bit a step.
uint64_t __udivmoddi4(uint64_t dividend, uint64_t divisor, uint64_t* remainder) {
  uint64_t quotient = 0;
  uint64_t rest = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const bool overflows = (rest >> 63) != 0;
    rest = (rest << 1) | ((dividend >> bit) & 1);
    if (overflows || rest >= divisor) {
      rest -= divisor;
      quotient |= uint64_t{1} << bit;
    }
  }
  if (remainder != nullptr) *remainder = rest;
  return quotient;
}

}  // extern "C"
