#ifndef TENSORFLOW_LITE_KERNELS_INTERNAL_QUANTIZATION_UTIL_H_
#define TENSORFLOW_LITE_KERNELS_INTERNAL_QUANTIZATION_UTIL_H_

#include <cstdint>

namespace tflite {

// `multiplier` as `quantized_multiplier` x 2^(shift - 31), with 2^30 <= quantized_multiplier <
// 2^31, or (0, 0) when it is not a positive number of at least 2^-32. Integer operations only.
// Kernels that start from scales use ScaleFactorOf() of micro/kernels/fixed_point.h, which needs no
// double at all.
void QuantizeMultiplier(double multiplier, int32_t* quantized_multiplier, int* shift);

}  // namespace tflite

#endif  // TENSORFLOW_LITE_KERNELS_INTERNAL_QUANTIZATION_UTIL_H_
