#ifndef TENSORFLOW_LITE_KERNELS_INTERNAL_COMMON_H_
#define TENSORFLOW_LITE_KERNELS_INTERNAL_COMMON_H_

#include <cstdint>

#include "tensorflow/lite/kernels/internal/types.h"
#include "tensorflow/lite/micro/kernels/fixed_point.h"

namespace tflite {

// x * quantized_multiplier * 2^(shift - 31), with TFLM's two roundings; the pair is
// QuantizeMultiplier()'s.
inline int32_t MultiplyByQuantizedMultiplier(int32_t x, int32_t quantized_multiplier, int shift) {
  return Rescale(x, {quantized_multiplier, shift});
}

}  // namespace tflite

#endif  // TENSORFLOW_LITE_KERNELS_INTERNAL_COMMON_H_
