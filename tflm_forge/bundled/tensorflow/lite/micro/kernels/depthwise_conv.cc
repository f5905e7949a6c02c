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
  TF_LITE_ENSURE_EQ(context, geometry->in_depth * params.depth_multiplier, geometry->out_depth);
  return kTfLiteOk;
}

template <typename Input, typename Sum>
Sum SumChannel(const WindowCursor& window, const Input* input, Sum input_offset,
               const Input* filter) {
  const WindowGeometry& g = window.geometry();
  Sum sum = 0;
  for (int row = window.rows().begin; row < window.rows().end; ++row) {
    for (int column = window.columns().begin; column < window.columns().end; ++column) {
      const Sum value = input[window.InputPixel(row, column) * g.in_depth] + input_offset;
      sum += value * filter[(row * g.filter_width + column) * g.out_depth];
    }
  }
  return sum;
}

#if FORGE_KERNELS_USE_DSP
// Four output channels at once; they read four input channels, or (`share_input`) all the same one.
void SumFourChannels(const WindowCursor& window, const int8_t* input, bool share_input,
                     int32_t input_offset, const int8_t* filter, int32_t* sums) {
  const WindowGeometry& g = window.geometry();
  const dsp::Pair offset = dsp::Broadcast(input_offset);
  const int input_step = g.dilation_width * g.in_depth;
  const int taps = window.columns().end - window.columns().begin;
  int32_t sum0 = 0;
  int32_t sum1 = 0;
  int32_t sum2 = 0;
  int32_t sum3 = 0;
  for (int row = window.rows().begin; row < window.rows().end; ++row) {
    const int column = window.columns().begin;
    const int8_t* source = input + window.InputPixel(row, column) * g.in_depth;
    const int8_t* weight = filter + (row * g.filter_width + column) * g.out_depth;
    for (int tap = taps; tap > 0; --tap) {
      const uint32_t inputs =
          share_input ? static_cast<uint8_t>(*source) * 0x01010101u : dsp::LoadQuad(source);
      const uint32_t weights = dsp::LoadQuad(weight);
      const dsp::Pair even_inputs = dsp::AddExtendedEven(offset, inputs);
      const dsp::Pair even_weights = dsp::ExtendEven(weights);
      sum0 = dsp::MultiplyAddLow(even_inputs, even_weights, sum0);
      sum2 = dsp::MultiplyAddHigh(even_inputs, even_weights, sum2);
      const dsp::Pair odd_inputs = dsp::AddExtendedOdd(offset, inputs);
      const dsp::Pair odd_weights = dsp::ExtendOdd(weights);
      sum1 = dsp::MultiplyAddLow(odd_inputs, odd_weights, sum1);
      sum3 = dsp::MultiplyAddHigh(odd_inputs, odd_weights, sum3);
      source += input_step;
      weight += g.out_depth;
    }
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}
#endif

void ComputePixel(const WindowCursor& window, const OutputStage& stage, int multiplier,
                  const int8_t* input, int32_t input_offset, const int8_t* filter,
                  int8_t* output) {
  const int channels = window.geometry().out_depth;
  int channel = 0;
#if FORGE_KERNELS_USE_DSP
  const bool share_input = multiplier % 4 == 0;
  if (multiplier == 1 || share_input) {
    for (; channel + 4 <= channels; channel += 4) {
      int32_t sums[4];
      SumFourChannels(window, input + channel / multiplier, share_input, input_offset,
                      filter + channel, sums);
      StoreChannels(stage, sums, channel, 4, output + channel);
    }
  }
#endif
  for (; channel < channels; ++channel) {
    const int32_t sum =
        SumChannel<int8_t, int32_t>(window, input + channel / multiplier, input_offset,
                                    filter + channel);
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
    ComputePixel(window, stage, params.depth_multiplier,
                 micro::GetTensorData<int8_t>(tensors.input), data.input_offset,
                 micro::GetTensorData<int8_t>(tensors.filter),
                 micro::GetTensorData<int8_t>(tensors.output) +
                     window.output_pixel() * geometry.out_depth);
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
      float sum = SumChannel<float, float>(window, input + channel / params.depth_multiplier, 0.0f,
                                           filter + channel);
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
