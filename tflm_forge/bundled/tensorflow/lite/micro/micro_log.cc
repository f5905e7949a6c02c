#include "tensorflow/lite/micro/micro_log.h"

#if !defined(TF_LITE_STRIP_ERROR_STRINGS)

#include "tensorflow/lite/micro/debug_log.h"

namespace {

void Print(const char* format, ...) {
  va_list args;
  va_start(args, format);
  DebugLog(format, args);
  va_end(args);
}

}  // namespace

void VMicroPrintf(const char* format, va_list args) {
  DebugLog(format, args);
  Print("\r\n");
}

void MicroPrintf(const char* format, ...) {
  va_list args;
  va_start(args, format);
  VMicroPrintf(format, args);
  va_end(args);
}

int MicroVsnprintf(char* buffer, size_t buf_size, const char* format, va_list vlist) {
  return DebugVsnprintf(buffer, buf_size, format, vlist);
}

int MicroSnprintf(char* buffer, size_t buf_size, const char* format, ...) {
  va_list args;
  va_start(args, format);
  const int length = DebugVsnprintf(buffer, buf_size, format, args);
  va_end(args);
  return length;
}

#endif  // !defined(TF_LITE_STRIP_ERROR_STRINGS)
