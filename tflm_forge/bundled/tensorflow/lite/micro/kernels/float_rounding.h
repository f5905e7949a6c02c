#ifndef TENSORFLOW_LITE_MICRO_KERNELS_FLOAT_ROUNDING_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_FLOAT_ROUNDING_H_

#include <cstdint>

namespace tflite {

// To nearest, ties away from zero, as roundf; saturates at +-2^30; 0 for a NaN.
inline int32_t RoundToInt(float value) {
  constexpr float kLimit = 1073741824.0f;
  if (value >= kLimit) return 1 << 30;
  if (value <= -kLimit) return -(1 << 30);
  if (value != value) return 0;
  const int32_t whole = static_cast<int32_t>(value);
  const float fraction = value - static_cast<float>(whole);
  if (fraction >= 0.5f) return whole + 1;
  return fraction <= -0.5f ? whole - 1 : whole;
}

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_FLOAT_ROUNDING_H_
