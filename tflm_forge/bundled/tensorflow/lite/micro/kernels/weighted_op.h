// What CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED share: checks of their tensors and the
// quantization of their outputs.

#ifndef TENSORFLOW_LITE_MICRO_KERNELS_WEIGHTED_OP_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_WEIGHTED_OP_H_

#include <cstdint>

#include "tensorflow/lite/c/builtin_op_data.h"
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/output_stage.h"

namespace tflite {

// The factors from sums to outputs, input_scale * filter_scales[i] / output_scale, take 8 bytes a
// channel. Each invocation computes them anew into scratch memory, which all ops share: kept ones
// would be a fifth of the arena of a small model, computing them costs 160 instructions a channel
// (a hundredth of such a model's inference).
struct WeightedOpData {
  const float* filter_scales;  // in the model: one, or one a channel
  int32_t scale_count;
  float input_scale;
  float output_scale;
  int16_t input_offset;
  int16_t output_offset;
  int16_t activation_min;
  int16_t activation_max;
  int scratch_index;
};

// The same tensors at invocation.
struct WeightedOpTensors {
  const TfLiteEvalTensor* input;
  const TfLiteEvalTensor* filter;
  const TfLiteEvalTensor* bias;  // may be null
  TfLiteEvalTensor* output;
};

WeightedOpTensors GetWeightedOpTensors(TfLiteContext* context, TfLiteNode* node);

void* InitWeightedOp(TfLiteContext* context, const char* buffer, size_t length);

// Checks types and sizes (all float32, or all int8 with an int32 bias) and fills in
// node->user_data; `channel_dimension` is the one of the filter that counts output channels.
TfLiteStatus PrepareWeightedOp(TfLiteContext* context, TfLiteNode* node,
                               TfLiteFusedActivation activation, int channel_dimension);

// Asks for scratch memory for the factors, followed by `extra_bytes`.
TfLiteStatus RequestWeightedOpScratch(TfLiteContext* context, TfLiteNode* node, int extra_bytes);

// The extra bytes that were asked for. The factors are either in scratch memory or in `single`.
int8_t* PrepareOutputStage(TfLiteContext* context, const WeightedOpData& data,
                           const TfLiteEvalTensor* bias, ScaleFactor* single, OutputStage* stage);

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_WEIGHTED_OP_H_
