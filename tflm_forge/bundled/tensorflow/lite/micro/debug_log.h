#ifndef TENSORFLOW_LITE_MICRO_DEBUG_LOG_H_
#define TENSORFLOW_LITE_MICRO_DEBUG_LOG_H_

#ifdef __cplusplus
#include <cstdarg>
#include <cstddef>
extern "C" {
#else
#include <stdarg.h>
#include <stddef.h>
#endif

// Both are for the board's support code to define.
void DebugLog(const char* format, va_list args);
int DebugVsnprintf(char* buffer, size_t buf_size, const char* format, va_list vlist);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_LITE_MICRO_DEBUG_LOG_H_
