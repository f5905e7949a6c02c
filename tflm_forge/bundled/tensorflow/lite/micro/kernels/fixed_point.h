// Fixed-point arithmetic of the int8 kernels; every rounding is the one TFLM does.

#ifndef TENSORFLOW_LITE_MICRO_KERNELS_FIXED_POINT_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_FIXED_POINT_H_

#include <cstdint>

namespace tflite {

// A positive real number: multiplier * 2^(shift - 31), multiplier in [2^30, 2^31) or 0.
struct ScaleFactor {
  int32_t multiplier;
  int32_t shift;
};

// The factor nearest to a * b / c, rounded as TFLM rounds it: the quotient to a double first, that
// to 31 bits after. Needs no double arithmetic. Factors below 2^-32 become 0, and the shift of
// those of 2^31 and more is 31. `c` must not be 0.
ScaleFactor ScaleFactorOf(float a, float b, float c);

// a * b / 2^31, to nearest, ties up. Not for a = b = INT32_MIN.
inline int32_t RoundingHighMultiply(int32_t a, int32_t b) {
  return static_cast<int32_t>((static_cast<int64_t>(a) * b + (int64_t{1} << 30)) >> 31);
}

// value / 2^exponent, to nearest, ties away from zero. 1 <= exponent <= 31; value > INT32_MIN.
inline int32_t RoundingShiftRight(int32_t value, int exponent) {
  const int32_t toward_zero = value + (value >> 31);
  return ((toward_zero >> (exponent - 1)) + 1) >> 1;
}

// value * factor, with TFLM's two roundings. Inlined even for size: it is the inner loop of most
// ops.
[[gnu::always_inline]] inline int32_t Rescale(int32_t value, ScaleFactor factor) {
  if (__builtin_expect(factor.shift < 0, 1)) {
    return RoundingShiftRight(RoundingHighMultiply(value, factor.multiplier), -factor.shift);
  }
  const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(value) << factor.shift);
  return RoundingHighMultiply(shifted, factor.multiplier);
}

template <typename T>
inline T Clamp(T value, T low, T high) {
  if (value < low) value = low;
  if (value > high) value = high;
  return value;
}

// 1 / (1 + x) in Q0.31, x in [0, 1) in Q0.31.
int32_t ReciprocalOfOnePlus(int32_t x);

// exp(x) in Q0.31, x <= 0 with `integer_bits` (at most 5) bits above the point.
int32_t ExpOfNegative(int32_t x, int integer_bits);

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_FIXED_POINT_H_
