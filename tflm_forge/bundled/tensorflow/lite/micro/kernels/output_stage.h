// The last step of the int8 kernels that accumulate in 32 bits: bias, rescaling, offset,
// activation.

#ifndef TENSORFLOW_LITE_MICRO_KERNELS_OUTPUT_STAGE_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_OUTPUT_STAGE_H_

#include <cstdint>

#include "tensorflow/lite/micro/kernels/fixed_point.h"

namespace tflite {

// Storing has a price a call, so callers collect sums of this many channels.
constexpr int kStoredAtOnce = 16;

struct OutputStage {
  const int32_t* biases;       // one a channel (bias_step 1), or one for all (0)
  const ScaleFactor* factors;  // as well
  int bias_step;
  int factor_step;
  int32_t offset;
  int32_t activation_min;
  int32_t activation_max;
};

// Writes the outputs of `count` channels from `channel` on; sums[0] and output[0] belong to
// `channel`.
void StoreChannels(const OutputStage& stage, const int32_t* sums, int channel, int count,
                   int8_t* output);

// Channels from `channel` on, as dot products of one input vector with rows of int8 weights that
// lie one after the other: sum((input[i] + input_offset) * rows[channel][i]), i < depth.
void MultiplyRows(const OutputStage& stage, const int8_t* input, int32_t input_offset,
                  const int8_t* rows, int depth, int channel, int count, int8_t* output);

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_OUTPUT_STAGE_H_
