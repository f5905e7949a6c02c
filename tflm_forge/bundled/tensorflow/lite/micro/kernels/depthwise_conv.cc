#include "tensorflow/lite/micro/kernels/depthwise_conv.h"

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/dsp.h"
#include "tensorflow/lite/micro/kernels/type_check.h"
#include "tensorflow/lite/micro/kernels/weighted_op.h"
#include "tensorflow/lite/micro/kernels/window.h"

namespace tflite {
namespace {

// The filter lies as [1][row][column][output channel]; output channel c reads input channel
// c / multiplier.
constexpr int kChannelDimension = 3;

TfLiteStatus DescribeDepthwise(TfLiteContext* context, const TfLiteDepthwiseConvParams& params,
                               const WeightedOpTensors& tensors, WindowGeometry* geometry) {
  const TfLiteIntArray& filter = *tensors.filter->dims;
  TF_LITE_ENSURE_EQ(context, filter.size, 4);
  TF_LITE_ENSURE_EQ(context, filter.data[0], 1);
  geometry->filter_height = filter.data[1];
  geometry->filter_width = filter.data[2];
  geometry->stride_height = params.stride_height;
  geometry->stride_width = params.stride_width;
  geometry->dilation_height = params.dilation_height_factor;
  geometry->dilation_width = params.dilation_width_factor;
  TF_LITE_ENSURE_STATUS(
      CompleteGeometry(context, tensors.input, tensors.output, params.padding, geometry));
  TF_LITE_ENSURE_EQ(context, geometry->out_depth, filter.data[kChannelDimension]);
  TF_LITE_ENSURE(context, params.depth_multiplier > 0);
  TF_LITE_ENSURE(context, params.depth_multiplier <= geometry->out_depth);
  TF_LITE_ENSURE_EQ(context, geometry->in_depth * params.depth_multiplier, geometry->out_depth);
  return kTfLiteOk;
}

template <typename Input, typename Sum>
Sum SumChannel(const WindowGeometry& geometry, const WindowCursor& window, const Input* input,
               Sum input_offset, const Input* filter) {
  Sum sum = 0;
  for (int row = 0; row < window.rows(); ++row) {
    const Input* source = input + window.InputPixel(row) * geometry.in_depth;
    const Input* weight = filter + window.FilterTap(row) * geometry.out_depth;
    for (int column = 0; column < window.columns(); ++column) {
      sum += (*source + input_offset) * *weight;
      source += geometry.dilation_width * geometry.in_depth;
      weight += geometry.out_depth;
    }
  }
  return sum;
}

#if FORGE_KERNELS_USE_DSP
// How to walk over the taps of a window; steps and gaps in elements.
struct TapWalk {
  int rows;
  int columns;
  int source_step;
  int weight_step;
  int source_gap;  // from behind the last column of a row to the first of the next
  int weight_gap;
  dsp::Pair offset;
};

// Four output channels at once; they read four input channels, or all the same one. Under -Os GCC
// gives registers to what the inner loop does not need; -O2 makes it a third shorter, and no
// larger.
template <bool kShareInput>
[[gnu::noinline, gnu::optimize("O2")]] void SumFourChannels(const TapWalk& walk,
                                                            const int8_t* source,
                                                            const int8_t* weight, int32_t* sums) {
  const dsp::Pair offset = walk.offset;
  const int source_step = walk.source_step;
  const int weight_step = walk.weight_step;
  int32_t sum0 = 0;
  int32_t sum1 = 0;
  int32_t sum2 = 0;
  int32_t sum3 = 0;
  for (int row = walk.rows; row > 0; --row) {
    int column = walk.columns;
    do {
      dsp::Obscure(source);
      dsp::Obscure(weight);
      const uint32_t inputs =
          kShareInput ? static_cast<uint8_t>(*source) * 0x01010101u : dsp::LoadQuad(source);
      source += source_step;
      const uint32_t weights = dsp::LoadQuad(weight);
      weight += weight_step;
      dsp::Pair wide_inputs = dsp::AddExtendedEven(offset, inputs);
      dsp::Pair wide_weights = dsp::ExtendEven(weights);
      sum0 = dsp::MultiplyAddLow(wide_inputs, wide_weights, sum0);
      sum2 = dsp::MultiplyAddHigh(wide_inputs, wide_weights, sum2);
      wide_inputs = dsp::AddExtendedOdd(offset, inputs);
      wide_weights = dsp::ExtendOdd(weights);
      sum1 = dsp::MultiplyAddLow(wide_inputs, wide_weights, sum1);
      sum3 = dsp::MultiplyAddHigh(wide_inputs, wide_weights, sum3);
    } while (--column != 0);
    source += walk.source_gap;
    weight += walk.weight_gap;
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}

// The channels that can be done four at once; returns how many these are.
int ComputeQuads(const WindowGeometry& geometry, const WindowCursor& window,
                 const OutputStage& stage, int multiplier, const int8_t* input,
                 int32_t input_offset, const int8_t* filter, int8_t* output) {
  const bool share_input = multiplier % 4 == 0;
  if (multiplier != 1 && !share_input) return 0;
  TapWalk walk;
  walk.rows = window.columns() == 0 ? 0 : window.rows();
  walk.columns = window.columns();
  walk.source_step = geometry.dilation_width * geometry.in_depth;
  walk.weight_step = geometry.out_depth;
  walk.source_gap = geometry.dilation_height * geometry.in_width * geometry.in_depth -
                    window.columns() * walk.source_step;
  walk.weight_gap = (geometry.filter_width - window.columns()) * walk.weight_step;
  walk.offset = dsp::Broadcast(input_offset);
  const auto sum_four = share_input ? SumFourChannels<true> : SumFourChannels<false>;
  input += window.InputPixel(0) * geometry.in_depth;
  filter += window.FilterTap(0) * geometry.out_depth;
  const int channels = geometry.out_depth / 4 * 4;
  int32_t sums[kStoredAtOnce];
  int stored = 0;
  for (int channel = 0; channel < channels; channel += 4) {
    sum_four(walk, input + channel / multiplier, filter + channel, sums + channel - stored);
    const int ready = channel + 4 - stored;
    if (ready < kStoredAtOnce && channel + 4 < channels) continue;
    StoreChannels(stage, sums, stored, ready, output + stored);
    stored += ready;
  }
  return channels;
}
#else
int ComputeQuads(const WindowGeometry& /*geometry*/, const WindowCursor& /*window*/,
                 const OutputStage& /*stage*/, int /*multiplier*/, const int8_t* /*input*/,
                 int32_t /*input_offset*/, const int8_t* /*filter*/, int8_t* /*output*/) {
  return 0;
}
#endif

void ComputePixel(const WindowGeometry& geometry, const WindowCursor& window,
                  const OutputStage& stage, int multiplier, const int8_t* input,
                  int32_t input_offset, const int8_t* filter, int8_t* output) {
  int channel =
      ComputeQuads(geometry, window, stage, multiplier, input, input_offset, filter, output);
  for (; channel < geometry.out_depth; ++channel) {
    const int32_t sum = SumChannel<int8_t, int32_t>(geometry, window, input + channel / multiplier,
                                                    input_offset, filter + channel);
    StoreChannels(stage, &sum, channel, 1, output + channel);
  }
}

TfLiteStatus InvokeInt8(TfLiteContext* context, TfLiteNode* node) {
  const auto& params = *static_cast<const TfLiteDepthwiseConvParams*>(node->builtin_data);
  const auto& data = *static_cast<const WeightedOpData*>(node->user_data);
  const WeightedOpTensors tensors = GetWeightedOpTensors(context, node);
  WindowGeometry geometry;
  TF_LITE_ENSURE_STATUS(DescribeDepthwise(context, params, tensors, &geometry));
  ScaleFactor single;
  OutputStage stage;
  PrepareOutputStage(context, data, tensors.bias, &single, &stage);
  WindowCursor window(geometry);
  while (window.Next()) {
    ComputePixel(
        geometry, window, stage, params.depth_multiplier,
        micro::GetTensorData<int8_t>(tensors.input), data.input_offset,
        micro::GetTensorData<int8_t>(tensors.filter),
        micro::GetTensorData<int8_t>(tensors.output) + window.output_pixel() * geometry.out_depth);
  }
  return kTfLiteOk;
}

TfLiteStatus InvokeFloat(TfLiteContext* context, TfLiteNode* node) {
  const auto& params = *static_cast<const TfLiteDepthwiseConvParams*>(node->builtin_data);
  const WeightedOpTensors tensors = GetWeightedOpTensors(context, node);
  WindowGeometry geometry;
  TF_LITE_ENSURE_STATUS(DescribeDepthwise(context, params, tensors, &geometry));
  float activation_min;
  float activation_max;
  CalculateActivationRange(params.activation, &activation_min, &activation_max);
  const float* const input = micro::GetTensorData<float>(tensors.input);
  const float* const filter = micro::GetTensorData<float>(tensors.filter);
  const float* const bias = micro::GetOptionalTensorData<float>(tensors.bias);
  float* output = micro::GetTensorData<float>(tensors.output);
  WindowCursor window(geometry);
  while (window.Next()) {
    for (int channel = 0; channel < geometry.out_depth; ++channel) {
      float sum = SumChannel<float, float>(
          geometry, window, input + channel / params.depth_multiplier, 0.0f, filter + channel);
      if (bias != nullptr) sum += bias[channel];
      *output++ = Clamp(sum, activation_min, activation_max);
    }
  }
  return kTfLiteOk;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE(context, node->builtin_data != nullptr);
  const auto& params = *static_cast<const TfLiteDepthwiseConvParams*>(node->builtin_data);
  TF_LITE_ENSURE_STATUS(PrepareWeightedOp(context, node, params.activation, kChannelDimension));
  const WeightedOpTensors tensors = GetWeightedOpTensors(context, node);
  WindowGeometry geometry;
  TF_LITE_ENSURE_STATUS(DescribeDepthwise(context, params, tensors, &geometry));
  if (tensors.input->type != kTfLiteInt8) return kTfLiteOk;
  return RequestWeightedOpScratch(context, node, 0);
}

TfLiteStatus PrepareInt8(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureInt8(context, GetWeightedOpTensors(context, node).input));
  return Prepare(context, node);
}

TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  const bool is_int8 = GetWeightedOpTensors(context, node).input->type == kTfLiteInt8;
  return is_int8 ? InvokeInt8(context, node) : InvokeFloat(context, node);
}

}  // namespace

TFLMRegistration Register_DEPTHWISE_CONV_2D() {
  return micro::RegisterOp(InitWeightedOp, Prepare, Invoke);
}

TFLMRegistration Register_DEPTHWISE_CONV_2D_INT8() {
  return micro::RegisterOp(InitWeightedOp, PrepareInt8, InvokeInt8);
}

}  // namespace tflite
