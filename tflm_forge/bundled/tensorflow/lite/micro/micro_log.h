#ifndef TENSORFLOW_LITE_MICRO_MICRO_LOG_H_
#define TENSORFLOW_LITE_MICRO_MICRO_LOG_H_

#if !defined(TF_LITE_STRIP_ERROR_STRINGS)
#include <cstdarg>
#include <cstddef>

void MicroPrintf(const char* format, ...);
void VMicroPrintf(const char* format, va_list args);
int MicroSnprintf(char* buffer, size_t buf_size, const char* format, ...);
int MicroVsnprintf(char* buffer, size_t buf_size, const char* format, va_list vlist);
#else
#define MicroPrintf(...) tflite::Unused(__VA_ARGS__)
#define VMicroPrintf(...) tflite::Unused(__VA_ARGS__)
#define MicroSnprintf(...) tflite::Unused<int>(__VA_ARGS__)
#define MicroVsnprintf(...) tflite::Unused<int>(__VA_ARGS__)
#endif

namespace tflite {

template <typename... Args>
void Unused(Args&&...) {}

template <typename T, typename... Args>
T Unused(Args&&...) {
  return static_cast<T>(0);
}

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MICRO_LOG_H_
