#include "text.h"

#include <cstdarg>
#include <cstdint>
#include <cstring>

#include "board.h"

namespace forge {
namespace {

constexpr uint32_t kMostDigits = 10;
constexpr uint32_t kHexDigits = 8;

void Write(const char* text, size_t length) {
  UartWrite(reinterpret_cast<const uint8_t*>(text), length);
}

void WriteNumber(uint32_t value, uint32_t base, uint32_t least_digits) {
  char digits[kMostDigits];
  uint32_t start = kMostDigits;
  do {
    const uint32_t digit = value % base;
    digits[--start] = static_cast<char>(digit + (digit < 10 ? '0' : 'A' - 10));
    value /= base;
  } while (value != 0 || kMostDigits - start < least_digits);
  Write(digits + start, kMostDigits - start);
}

}  // namespace

void PrintLine(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  for (; *format != 0; ++format) {
    if (*format != '%') {
      Write(format, 1);
      continue;
    }
    if (*++format == 's') {
      const char* text = va_arg(arguments, const char*);
      Write(text, std::strlen(text));
    } else if (*format == 'x') {
      WriteNumber(va_arg(arguments, uint32_t), 16, kHexDigits);
    } else {
      WriteNumber(va_arg(arguments, uint32_t), 10, 1);
    }
  }
  va_end(arguments);
  Write("\r\n", 2);
}

}  // namespace forge
