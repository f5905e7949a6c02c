// Ends of the program that the C and C++ libraries ask for. There is no heap and no stdio: whatever
// needs them fails to link, which is better than kilobytes nobody asked for.
#include <cstddef>
#include <cstdint>

#include "board.h"
#include "forge_status.h"
#include "text.h"

namespace {

[[noreturn]] void Stop(const void* caller) {
  forge::FaultRecord record = {};
  record.kind = static_cast<uint32_t>(forge::Status::kAborted);
  // The return address stands behind the call and has the Thumb bit set.
  record.pc = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(caller) & ~1u) - 2;
  record.sp = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
  ForgeFault(record);
}

}  // namespace

extern "C" {

[[noreturn]] void abort() { Stop(__builtin_return_address(0)); }

[[noreturn]] void _exit(int) { Stop(__builtin_return_address(0)); }

[[noreturn]] void __cxa_pure_virtual() { Stop(__builtin_return_address(0)); }

// Called by assert(), in builds without NDEBUG.
[[noreturn]] void __assert_func(const char* file, int line, const char*, const char* condition) {
  forge::PrintLine("assert: %s:%u %s", file, static_cast<uint32_t>(line), condition);
  Stop(__builtin_return_address(0));
}

// newlib's mathematics sets it; the library's own would bring a record of 100 bytes and more.
int* __errno() {
  static int error;
  return &error;
}

}  // extern "C"

// The vtables of the runtime's classes name it; nothing is ever deleted.
void operator delete(void*) noexcept {}
void operator delete(void*, size_t) noexcept {}
