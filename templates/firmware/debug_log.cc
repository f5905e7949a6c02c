// What the runtime asks of a platform: text output and time. A small formatter of its own keeps
// newlib's out, which would cost several kilobytes.
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "board.h"

namespace forge {
namespace {

constexpr uint32_t kMaxDigits = 21;  // of 64 bits, and a sign
constexpr uint32_t kDefaultPrecision = 6;
constexpr uint32_t kMaxPrecision = 9;

// A double as IEEE 754 has it. Four bits above the fraction are free for its next digit.
constexpr int kMantissaBits = 52;
constexpr int kExponentMask = 0x7FF;
constexpr int kExponentBias = 1023;
constexpr int kFractionBits = 60;
constexpr int kSpareBits = kFractionBits - kMantissaBits;
constexpr uint64_t kFractionMask = (1ull << kFractionBits) - 1;
constexpr int kExponentLimit = 63;  // from here on the whole part does not fit in 64 bits

// Where the text goes: into a buffer, or to the UART when there is none.
struct Sink {
  char* buffer;
  size_t capacity;
  size_t length;  // of the whole text, also of what did not fit
};

struct Spec {
  bool left;
  bool zeros;
  uint32_t width;
  int precision;  // -1: none given
  int longs;      // 1: l, z or t; 2: ll
};

void Put(Sink& sink, const char* text, size_t length) {
  if (sink.buffer == nullptr) {
    UartWrite(reinterpret_cast<const uint8_t*>(text), length);
  } else if (sink.length < sink.capacity) {
    const size_t room = sink.capacity - sink.length;
    std::memcpy(sink.buffer + sink.length, text, length < room ? length : room);
  }
  sink.length += length;
}

void PutPadded(Sink& sink, const Spec& spec, const char* text, uint32_t length) {
  const uint32_t padding = spec.width > length ? spec.width - length : 0;
  const bool zeros = spec.zeros && !spec.left;
  if (zeros && length != 0 && text[0] == '-') {
    Put(sink, text++, 1);
    --length;
  }
  for (uint32_t i = 0; i < padding && !spec.left; ++i) Put(sink, zeros ? "0" : " ", 1);
  Put(sink, text, length);
  for (uint32_t i = 0; i < padding && spec.left; ++i) Put(sink, " ", 1);
}

// Divides in steps of 16 bits, which needs no 64-bit division from the compiler's library.
uint32_t DivideBy(uint64_t* value, uint32_t base) {
  uint32_t remainder = 0;
  uint64_t quotient = 0;
  for (int shift = 48; shift >= 0; shift -= 16) {
    const uint32_t part = (remainder << 16) | static_cast<uint16_t>(*value >> shift);
    quotient |= static_cast<uint64_t>(part / base) << shift;
    remainder = part % base;
  }
  *value = quotient;
  return remainder;
}

// Writes digits before `end`, returns the first.
char* DigitsBefore(char* end, uint64_t value, uint32_t base, char letter) {
  do {
    const uint32_t digit = DivideBy(&value, base);
    *--end = static_cast<char>(digit < 10 ? '0' + digit : letter + digit - 10);
  } while (value != 0);
  return end;
}

void PutInteger(Sink& sink, const Spec& spec, uint64_t value, bool negative, char conversion) {
  char digits[kMaxDigits];
  char* const end = digits + kMaxDigits;
  const bool decimal = conversion == 'd';
  char* start = DigitsBefore(end, negative ? 0 - value : value, decimal ? 10 : 16,
                             conversion == 'X' ? 'A' : 'a');
  if (negative) *--start = '-';
  PutPadded(sink, spec, start, static_cast<uint32_t>(end - start));
}

void PutText(Sink& sink, const Spec& spec, const char* text) {
  if (text == nullptr) text = "(null)";
  uint32_t length = 0;
  while (length != static_cast<uint32_t>(spec.precision) && text[length] != 0) ++length;
  PutPadded(sink, spec, text, length);
}

// A number without its sign: whole part, and kFractionBits bits behind the point.
struct Fixed {
  uint64_t whole;
  uint64_t fraction;
};

// `exponent` is below kExponentLimit.
Fixed ToFixed(uint64_t mantissa, int exponent) {
  Fixed fixed = {0, 0};
  if (exponent >= kMantissaBits) {
    fixed.whole = mantissa << (exponent - kMantissaBits);
  } else if (exponent >= 0) {
    fixed.whole = mantissa >> (kMantissaBits - exponent);
    fixed.fraction = (mantissa << (kSpareBits + exponent)) & kFractionMask;
  } else if (exponent > -kFractionBits) {
    fixed.fraction = (mantissa << kSpareBits) >> -exponent;
  }
  return fixed;
}

// Takes `places` digits off the fraction, the last one rounded.
uint32_t RoundFraction(Fixed* fixed, uint32_t places) {
  uint32_t digits = 0;
  uint32_t unit = 1;
  for (uint32_t i = 0; i < places; ++i) {
    fixed->fraction *= 10;
    digits = digits * 10 + static_cast<uint32_t>(fixed->fraction >> kFractionBits);
    fixed->fraction &= kFractionMask;
    unit *= 10;
  }
  if (fixed->fraction >> (kFractionBits - 1) != 0) ++digits;
  if (digits < unit) return digits;
  ++fixed->whole;
  return digits - unit;
}

// Works on the bits of the double: arithmetic on it would link a library on most cores.
void PutDouble(Sink& sink, const Spec& spec, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const bool negative = bits >> 63 != 0;
  const int exponent = static_cast<int>((bits >> kMantissaBits) & kExponentMask) - kExponentBias;
  const uint64_t one = 1ull << kMantissaBits;
  const uint64_t mantissa = (bits & (one - 1)) | one;
  if (exponent >= kExponentLimit) {
    const bool finite = exponent <= kExponentBias;
    PutText(sink, spec, finite ? "huge" : mantissa != one ? "nan" : negative ? "-inf" : "inf");
    return;
  }
  uint32_t places = spec.precision < 0 ? kDefaultPrecision : static_cast<uint32_t>(spec.precision);
  if (places > kMaxPrecision) places = kMaxPrecision;
  Fixed fixed = ToFixed(mantissa, exponent);
  const uint32_t digits = RoundFraction(&fixed, places);
  char text[kMaxDigits + 1 + kMaxPrecision];
  char* const end = text + sizeof(text);
  char* start = end;
  if (places != 0) {
    start = DigitsBefore(end, digits, 10, 'a');
    while (end - start < static_cast<int>(places)) *--start = '0';
    *--start = '.';
  }
  start = DigitsBefore(start, fixed.whole, 10, 'a');
  if (negative) *--start = '-';
  PutPadded(sink, spec, start, static_cast<uint32_t>(end - start));
}

uint32_t ParseNumber(const char** format) {
  uint32_t number = 0;
  while (**format >= '0' && **format <= '9') {
    number = number * 10 + static_cast<uint32_t>(*(*format)++ - '0');
  }
  return number;
}

Spec ParseSpec(const char** format) {
  Spec spec = {false, false, 0, -1, 0};
  for (;; ++*format) {
    if (**format == '-') {
      spec.left = true;
    } else if (**format == '0') {
      spec.zeros = true;
    } else {
      break;
    }
  }
  spec.width = ParseNumber(format);
  if (**format == '.') {
    ++*format;
    spec.precision = static_cast<int>(ParseNumber(format));
  }
  for (;; ++*format) {
    const char length = **format;
    if (length == 'l' || length == 'z' || length == 't') {
      ++spec.longs;
    } else if (length != 'h') {
      return spec;
    }
  }
}

// An int when no length is given; `long`, size_t and ptrdiff_t are of one size.
int64_t NextSigned(va_list* arguments, const Spec& spec) {
  if (spec.longs >= 2) return va_arg(*arguments, long long);
  if (spec.longs == 1) return va_arg(*arguments, long);
  return va_arg(*arguments, int);
}

uint64_t NextUnsigned(va_list* arguments, const Spec& spec) {
  if (spec.longs >= 2) return va_arg(*arguments, unsigned long long);
  if (spec.longs == 1) return va_arg(*arguments, unsigned long);
  return va_arg(*arguments, unsigned int);
}

// Writes one conversion; false when it is none that is known.
bool PutConversion(Sink& sink, const Spec& spec, char conversion, va_list* arguments) {
  switch (conversion) {
    case 's':
      PutText(sink, spec, va_arg(*arguments, const char*));
      return true;
    case 'c': {
      const char letter = static_cast<char>(va_arg(*arguments, int));
      PutPadded(sink, spec, &letter, 1);
      return true;
    }
    case 'd':
    case 'i': {
      const int64_t value = NextSigned(arguments, spec);
      PutInteger(sink, spec, static_cast<uint64_t>(value), value < 0, 'd');
      return true;
    }
    case 'u':
      PutInteger(sink, spec, NextUnsigned(arguments, spec), false, 'd');
      return true;
    case 'x':
    case 'X':
      PutInteger(sink, spec, NextUnsigned(arguments, spec), false, conversion);
      return true;
    case 'p':
      Put(sink, "0x", 2);
      PutInteger(sink, spec, reinterpret_cast<uintptr_t>(va_arg(*arguments, void*)), false, 'x');
      return true;
    case 'f':
    case 'g':
    case 'e':
      PutDouble(sink, spec, va_arg(*arguments, double));
      return true;
    case '%':
      Put(sink, "%", 1);
      return true;
    default:
      return false;
  }
}

void Format(Sink& sink, const char* format, va_list* arguments) {
  while (*format != 0) {
    const char* start = format;
    while (*format != 0 && *format != '%') ++format;
    if (format != start) Put(sink, start, static_cast<size_t>(format - start));
    if (*format == 0) return;
    start = format++;
    const Spec spec = ParseSpec(&format);
    if (*format == 0 || !PutConversion(sink, spec, *format++, arguments)) {
      Put(sink, start, static_cast<size_t>(format - start));
    }
  }
}

}  // namespace

}  // namespace forge

// On some processors va_list is an array, so that the address of a parameter has another type:
// hence the copies.
extern "C" void DebugLog(const char* format, va_list arguments) {
  forge::Sink sink = {nullptr, 0, 0};
  va_list copy;
  va_copy(copy, arguments);
  forge::Format(sink, format, &copy);
  va_end(copy);
}

extern "C" int DebugVsnprintf(char* buffer, size_t capacity, const char* format,
                              va_list arguments) {
  if (capacity == 0) return 0;
  forge::Sink sink = {buffer, capacity - 1, 0};
  va_list copy;
  va_copy(copy, arguments);
  forge::Format(sink, format, &copy);
  va_end(copy);
  buffer[sink.length < capacity ? sink.length : capacity - 1] = 0;
  return static_cast<int>(sink.length);
}

namespace tflite {

uint32_t ticks_per_second() { return forge::BoardTicksPerSecond(); }

uint32_t GetCurrentTimeTicks() { return static_cast<uint32_t>(forge::BoardTicks()); }

}  // namespace tflite
