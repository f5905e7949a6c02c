#ifndef TENSORFLOW_LITE_KERNELS_INTERNAL_QUANTIZATION_UTIL_H_
#define TENSORFLOW_LITE_KERNELS_INTERNAL_QUANTIZATION_UTIL_H_

#include <cstdint>

namespace tflite {

// `multiplier` as `quantized_multiplier` x 2^(shift - 31), with 2^30 <= quantized_multiplier < 2^31,
// or (0, 0) when it is 0 or below 2^-32. Integer operations only.
void QuantizeMultiplier(double multiplier, int32_t* quantized_multiplier, int* shift);

// The same for double(a) * double(b) / double(c), bit for bit, without double arithmetic: products
// of two floats are exact in double, so one correctly rounded division is all there is to emulate.
// Scales that are not positive and finite give (0, 0).
void QuantizeMultiplierRatio(float a, float b, float c, int32_t* quantized_multiplier, int* shift);

}  // namespace tflite

#endif  // TENSORFLOW_LITE_KERNELS_INTERNAL_QUANTIZATION_UTIL_H_
