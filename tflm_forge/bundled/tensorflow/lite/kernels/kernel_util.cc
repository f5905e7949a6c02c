#include "tensorflow/lite/kernels/kernel_util.h"

#include <cmath>

#include "tensorflow/lite/micro/kernels/fixed_point.h"

namespace tflite {

int64_t NumElements(const TfLiteIntArray* dims) {
  int64_t count = 1;
  for (int i = 0; i < dims->size; ++i) count *= dims->data[i];
  return count;
}

bool HaveSameShapes(const TfLiteTensor* input1, const TfLiteTensor* input2) {
  return TfLiteIntArrayEqual(input1->dims, input2->dims) != 0;
}

int TfLiteTypeGetSizeBits(TfLiteType type) {
  static constexpr uint8_t kBits[] = {0,   32, 32, 8, 64, 0,  8, 16, 64, 8, 16, 64,
                                      128, 64, 0,  0, 32, 16, 4, 16, 2,  4, 8,  8};
  return static_cast<unsigned>(type) < sizeof(kBits) ? kBits[type] : 0;
}

int TfLiteTypeGetSize(TfLiteType type) {
  const int bits = TfLiteTypeGetSizeBits(type);
  return bits % 8 == 0 ? bits / 8 : 0;
}

TfLiteStatus PopulateConvolutionQuantizationParams(
    TfLiteContext* context, const TfLiteTensor* input, const TfLiteTensor* filter,
    const TfLiteTensor* bias, TfLiteTensor* output, const TfLiteFusedActivation& activation,
    int32_t* multiplier, int* shift, int32_t* output_activation_min, int32_t* output_activation_max,
    int32_t* per_channel_multiplier, int32_t* per_channel_shift) {
  TF_LITE_ENSURE_EQ(context, filter->quantization.type, kTfLiteAffineQuantization);
  const auto* affine = static_cast<TfLiteAffineQuantization*>(filter->quantization.params);
  return PopulateConvolutionQuantizationParams(
      context, input, filter, bias, output, activation, multiplier, shift, output_activation_min,
      output_activation_max, per_channel_multiplier, per_channel_shift, affine->scale->size);
}

TfLiteStatus PopulateConvolutionQuantizationParams(
    TfLiteContext* context, const TfLiteTensor* input, const TfLiteTensor* filter,
    const TfLiteTensor*, TfLiteTensor* output, const TfLiteFusedActivation& activation,
    int32_t* multiplier, int* shift, int32_t* output_activation_min, int32_t* output_activation_max,
    int32_t* per_channel_multiplier, int32_t* per_channel_shift, int num_channels) {
  TF_LITE_ENSURE_EQ(context, input->quantization.type, kTfLiteAffineQuantization);
  TF_LITE_ENSURE_EQ(context, filter->quantization.type, kTfLiteAffineQuantization);
  const auto* affine = static_cast<TfLiteAffineQuantization*>(filter->quantization.params);
  const bool is_per_channel = affine->scale->size > 1;
  if (is_per_channel) {
    const int axis = affine->quantized_dimension;
    TF_LITE_ENSURE(context, input->type == kTfLiteInt8 || input->type == kTfLiteInt16);
    TF_LITE_ENSURE(context, filter->type == kTfLiteInt8 || filter->type == kTfLiteInt4);
    TF_LITE_ENSURE_EQ(context, affine->scale->size, num_channels);
    TF_LITE_ENSURE(context, axis >= 0 && axis < filter->dims->size);
    TF_LITE_ENSURE_EQ(context, num_channels, filter->dims->data[axis]);
  }
  for (int i = 0; i < num_channels; ++i) {
    const ScaleFactor factor = ScaleFactorOf(
        input->params.scale, affine->scale->data[is_per_channel ? i : 0], output->params.scale);
    per_channel_multiplier[i] = factor.multiplier;
    per_channel_shift[i] = factor.shift;
  }
  if (input->type == kTfLiteUInt8) {
    const ScaleFactor factor =
        ScaleFactorOf(input->params.scale * filter->params.scale, 1.0f, output->params.scale);
    *multiplier = factor.multiplier;
    *shift = -factor.shift;
  }
  return CalculateActivationRangeQuantized(context, activation, output, output_activation_min,
                                           output_activation_max);
}

TfLiteStatus GetQuantizedConvolutionMultipler(TfLiteContext* context, const TfLiteTensor* input,
                                              const TfLiteTensor* filter, TfLiteTensor* output,
                                              double* multiplier) {
  const float product = input->params.scale * filter->params.scale;
  TF_LITE_ENSURE(context, product >= 0.0f);
  *multiplier = static_cast<double>(product) / static_cast<double>(output->params.scale);
  return kTfLiteOk;
}

TfLiteStatus GetQuantizedConvolutionMultipler(TfLiteContext* context, const TfLiteTensor* input,
                                              const TfLiteTensor* filter, const TfLiteTensor* bias,
                                              TfLiteTensor* output, double* multiplier) {
  if (bias != nullptr) {
    const double product =
        static_cast<double>(input->params.scale) * static_cast<double>(filter->params.scale);
    const double difference = std::abs(product - static_cast<double>(bias->params.scale));
    TF_LITE_ENSURE(context, difference / static_cast<double>(output->params.scale) <= 0.02);
  }
  return GetQuantizedConvolutionMultipler(context, input, filter, output, multiplier);
}

namespace {

// False when the result does not fit 32 bits.
bool Quantize(const TfLiteTensor* tensor, float value, int32_t* quantized) {
  const float steps = std::round(value / tensor->params.scale);
  if (!(steps >= -2147483648.0f && steps < 2147483648.0f)) return false;
  const uint32_t sum = static_cast<uint32_t>(tensor->params.zero_point) +
                       static_cast<uint32_t>(static_cast<int32_t>(steps));
  *quantized = static_cast<int32_t>(sum);
  return true;
}

}  // namespace

TfLiteStatus CalculateActivationRangeQuantized(TfLiteContext* context,
                                               TfLiteFusedActivation activation,
                                               TfLiteTensor* output, int32_t* act_min,
                                               int32_t* act_max) {
  const bool is_unsigned = output->type == kTfLiteUInt8;
  TF_LITE_ENSURE(context,
                 is_unsigned || output->type == kTfLiteInt8 || output->type == kTfLiteInt16);
  const int32_t half = output->type == kTfLiteInt16 ? 0x8000 : 0x80;
  *act_min = is_unsigned ? 0 : -half;
  *act_max = is_unsigned ? 2 * half - 1 : half - 1;
  const bool is_symmetric = activation == kTfLiteActReluN1To1;
  int32_t low, high;
  if (activation == kTfLiteActRelu || activation == kTfLiteActRelu6 || is_symmetric) {
    TF_LITE_ENSURE(context, Quantize(output, is_symmetric ? -1.0f : 0.0f, &low));
    if (low > *act_min) *act_min = low;
  }
  if (activation == kTfLiteActRelu6 || is_symmetric) {
    TF_LITE_ENSURE(context, Quantize(output, is_symmetric ? 1.0f : 6.0f, &high));
    if (high < *act_max) *act_max = high;
  }
  return kTfLiteOk;
}

}  // namespace tflite
