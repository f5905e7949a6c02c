#include "tensorflow/lite/kernels/internal/quantization_util.h"

#include <cstring>

namespace tflite {

void QuantizeMultiplier(double multiplier, int32_t* quantized_multiplier, int* shift) {
  constexpr int kFractionBits = 52;
  constexpr int kDroppedBits = kFractionBits + 1 - 31;
  uint64_t bits;
  memcpy(&bits, &multiplier, sizeof(bits));
  const int biased_exponent = static_cast<int>(bits >> kFractionBits);
  *quantized_multiplier = 0;
  *shift = 0;
  const bool is_positive_number = biased_exponent > 0 && biased_exponent < 0x7FF;
  if (!is_positive_number) return;
  const uint64_t one = uint64_t{1} << kFractionBits;
  const uint64_t mantissa = (bits & (one - 1)) | one;
  uint32_t rounded = static_cast<uint32_t>((mantissa + (1u << (kDroppedBits - 1))) >> kDroppedBits);
  int exponent = biased_exponent - 1022;
  if (rounded == 1u << 31) {
    rounded >>= 1;
    ++exponent;
  }
  if (exponent < -31) return;
  *quantized_multiplier = static_cast<int32_t>(rounded);
  *shift = exponent;
}

}  // namespace tflite
