// Formats with the firmware's DebugVsnprintf and with the C library's, and prints both where they
// differ.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "board.h"

extern "C" int DebugVsnprintf(char* buffer, size_t capacity, const char* format, va_list arguments);
extern "C" void DebugLog(const char* format, va_list arguments);

namespace forge {
void UartWrite(const uint8_t* data, size_t size) { std::fwrite(data, 1, size, stdout); }
uint64_t BoardTicks() { return 0; }
uint32_t BoardTicksPerSecond() { return 0; }
}  // namespace forge

namespace {

int g_differences;

void Compare(size_t capacity, const char* format, ...) {
  char ours[128];
  char theirs[128];
  std::memset(ours, '#', sizeof(ours));
  std::memset(theirs, '#', sizeof(theirs));
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int our_length = DebugVsnprintf(ours, capacity, format, arguments);
  const int their_length = std::vsnprintf(theirs, capacity, format, again);
  va_end(again);
  va_end(arguments);
  if (our_length == their_length && std::strcmp(ours, theirs) == 0) return;
  ++g_differences;
  std::printf("'%s': got %d '%s', want %d '%s'\n", format, our_length, ours, their_length, theirs);
}

void Log(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  DebugLog(format, arguments);
  va_end(arguments);
}

}  // namespace

int main() {
  constexpr size_t kAll = 128;
  Compare(kAll, "plain");
  Compare(kAll, "%s and %s", "one", "two");
  Compare(kAll, "%10s|%-10s|%.2s|%c%%", "right", "left", "cut", 'x');
  Compare(kAll, "%d %d %d %i", 0, -1, 2147483647, -2147483647 - 1);
  Compare(kAll, "%u %x %X %08x %8d|%-8d|%08d", 4294967295u, 48879u, 48879u, 48879u, -42, -42, -42);
  Compare(kAll, "%ld %lu %lx", -5L, 5UL, 255UL);
  Compare(kAll, "%lld %llu %llx", -9223372036854775807LL - 1, 18446744073709551615ULL,
          0x123456789abcdefULL);
  Compare(kAll, "%zu %td %hd %hhu", sizeof(int), static_cast<ptrdiff_t>(-3), 7, 8);
  Compare(kAll, "%f %f %f %f", 0.0, -0.5, 3.14159265358979, 123456.789);
  Compare(kAll, "%.3f %.0f %.9f %8.2f|%-8.2f|", 2.0005, 1.5, 0.123456789, -3.14159, 2.5);
  Compare(kAll, "%f %f %f", 1e-7, 4.9e-7, 5.1e-7);
  Compare(kAll, "%f %.2f %.1f", 0.9999999, 0.999, 9.96);
  Compare(kAll, "%f %f", 4503599627370497.0, 9007199254740992.0);
  Compare(kAll, "%f %f %f", 1.0 / 0.0, -1.0 / 0.0, 1e-300);
  Compare(kAll, "100%%");
  Compare(8, "longer than the buffer");
  Compare(1, "%d", 12345);
  Compare(6, "%s", "exact");
  Compare(5, "%s", "exact");
  Log("log %s %d\n", "line", 7);
  Log("%q\n", 1);
  return g_differences == 0 ? 0 : 1;
}
