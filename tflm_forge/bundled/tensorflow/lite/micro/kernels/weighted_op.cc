#include "tensorflow/lite/micro/kernels/weighted_op.h"

#include "tensorflow/lite/kernels/kernel_util.h"

namespace tflite {
namespace {

constexpr int kInput = 0;
constexpr int kFilter = 1;
constexpr int kBias = 2;
constexpr int kOutput = 0;

constexpr int kNoScratch = -1;

// How far TFLM lets the scale of a bias differ from input scale * filter scale, in output steps.
constexpr float kBiasScaleTolerance = 0.02f;

bool IsPositive(float scale) { return scale > 0.0f && scale <= std::numeric_limits<float>::max(); }

struct TempTensors {
  TfLiteTensor* input;
  TfLiteTensor* filter;
  TfLiteTensor* bias;
  TfLiteTensor* output;
};

TfLiteStatus CheckTensors(TfLiteContext* context, const TempTensors& tensors, int channels) {
  const TfLiteType type = tensors.input->type;
  TF_LITE_ENSURE(context, type == kTfLiteFloat32 || type == kTfLiteInt8);
  TF_LITE_ENSURE_TYPES_EQ(context, tensors.filter->type, type);
  TF_LITE_ENSURE_TYPES_EQ(context, tensors.output->type, type);
  if (tensors.bias == nullptr) return kTfLiteOk;
  TF_LITE_ENSURE_TYPES_EQ(context, tensors.bias->type,
                          type == kTfLiteInt8 ? kTfLiteInt32 : kTfLiteFloat32);
  TF_LITE_ENSURE_EQ(context, static_cast<int>(NumElements(tensors.bias)), channels);
  return kTfLiteOk;
}

TfLiteStatus PrepareQuantization(TfLiteContext* context, const TempTensors& tensors,
                                 TfLiteFusedActivation activation, int channel_dimension,
                                 WeightedOpData* data) {
  const TfLiteQuantization& filter_quantization = tensors.filter->quantization;
  TF_LITE_ENSURE_EQ(context, filter_quantization.type, kTfLiteAffineQuantization);
  const auto* affine = static_cast<const TfLiteAffineQuantization*>(filter_quantization.params);
  TF_LITE_ENSURE(context, affine != nullptr && affine->scale != nullptr);
  data->filter_scales = affine->scale->data;
  data->scale_count = affine->scale->size;
  if (data->scale_count != 1) {
    TF_LITE_ENSURE_EQ(context, affine->quantized_dimension, channel_dimension);
    TF_LITE_ENSURE_EQ(context, static_cast<int>(data->scale_count),
                      tensors.filter->dims->data[channel_dimension]);
  }
  data->input_scale = tensors.input->params.scale;
  data->output_scale = tensors.output->params.scale;
  TF_LITE_ENSURE(context, IsPositive(data->input_scale) && IsPositive(data->output_scale));

  int32_t activation_min = 0;
  int32_t activation_max = 0;
  TF_LITE_ENSURE_STATUS(CalculateActivationRangeQuantized(context, activation, tensors.output,
                                                          &activation_min, &activation_max));
  data->activation_min = static_cast<int16_t>(activation_min);
  data->activation_max = static_cast<int16_t>(activation_max);
  data->input_offset = static_cast<int16_t>(-tensors.input->params.zero_point);
  data->output_offset = static_cast<int16_t>(tensors.output->params.zero_point);
  return kTfLiteOk;
}

// A fully connected layer with one scale: TFLM multiplies the two scales in float there.
TfLiteStatus JoinScales(TfLiteContext* context, const TempTensors& tensors, WeightedOpData* data) {
  static constexpr float kUnitScale = 1.0f;
  data->input_scale *= data->filter_scales[0];
  data->filter_scales = &kUnitScale;
  TF_LITE_ENSURE_EQ(context, static_cast<int>(tensors.filter->params.zero_point), 0);
  if (tensors.bias == nullptr) return kTfLiteOk;
  const float difference = data->input_scale - tensors.bias->params.scale;
  const float limit = kBiasScaleTolerance * data->output_scale;
  TF_LITE_ENSURE(context, difference <= limit && -difference <= limit);
  return kTfLiteOk;
}

}  // namespace

WeightedOpTensors GetWeightedOpTensors(TfLiteContext* context, TfLiteNode* node) {
  return {micro::GetEvalInput(context, node, kInput), micro::GetEvalInput(context, node, kFilter),
          micro::GetEvalInput(context, node, kBias), micro::GetEvalOutput(context, node, kOutput)};
}

void* InitWeightedOp(TfLiteContext* context, const char* /*buffer*/, size_t /*length*/) {
  return context->AllocatePersistentBuffer(context, sizeof(WeightedOpData));
}

TfLiteStatus PrepareWeightedOp(TfLiteContext* context, TfLiteNode* node,
                               TfLiteFusedActivation activation, int channel_dimension) {
  TF_LITE_ENSURE(context, NumInputs(node) == 2 || NumInputs(node) == 3);
  TF_LITE_ENSURE_EQ(context, NumOutputs(node), 1);
  TF_LITE_ENSURE(context, node->user_data != nullptr);
  auto* data = static_cast<WeightedOpData*>(node->user_data);
  MicroContext* micro_context = GetMicroContext(context);
  const TempTensors tensors = {micro_context->AllocateTempInputTensor(node, kInput),
                               micro_context->AllocateTempInputTensor(node, kFilter),
                               micro_context->AllocateTempInputTensor(node, kBias),
                               micro_context->AllocateTempOutputTensor(node, kOutput)};
  TF_LITE_ENSURE(
      context, tensors.input != nullptr && tensors.filter != nullptr && tensors.output != nullptr);
  TF_LITE_ENSURE(context, NumDimensions(tensors.filter) > channel_dimension);
  TF_LITE_ENSURE_STATUS(
      CheckTensors(context, tensors, SizeOfDimension(tensors.filter, channel_dimension)));
  data->scratch_index = kNoScratch;
  if (tensors.input->type == kTfLiteInt8) {
    TF_LITE_ENSURE_STATUS(
        PrepareQuantization(context, tensors, activation, channel_dimension, data));
    const bool is_fully_connected = NumDimensions(tensors.filter) == 2;
    if (is_fully_connected && data->scale_count == 1) {
      TF_LITE_ENSURE_STATUS(JoinScales(context, tensors, data));
    }
  }
  micro_context->DeallocateTempTfLiteTensor(tensors.output);
  if (tensors.bias != nullptr) micro_context->DeallocateTempTfLiteTensor(tensors.bias);
  micro_context->DeallocateTempTfLiteTensor(tensors.filter);
  micro_context->DeallocateTempTfLiteTensor(tensors.input);
  return kTfLiteOk;
}

TfLiteStatus RequestWeightedOpScratch(TfLiteContext* context, TfLiteNode* node, int extra_bytes) {
  auto* data = static_cast<WeightedOpData*>(node->user_data);
  size_t bytes = static_cast<size_t>(extra_bytes);
  if (data->scale_count > 1) bytes += data->scale_count * sizeof(ScaleFactor);
  if (bytes == 0) return kTfLiteOk;
  return context->RequestScratchBufferInArena(context, bytes, &data->scratch_index);
}

int8_t* PrepareOutputStage(TfLiteContext* context, const WeightedOpData& data,
                           const TfLiteEvalTensor* bias, ScaleFactor* single, OutputStage* stage) {
  int8_t* scratch = nullptr;
  if (data.scratch_index != kNoScratch) {
    scratch = static_cast<int8_t*>(context->GetScratchBuffer(context, data.scratch_index));
  }
  ScaleFactor* factors = single;
  if (data.scale_count > 1) {
    factors = reinterpret_cast<ScaleFactor*>(scratch);
    scratch += data.scale_count * sizeof(ScaleFactor);
  }
  for (int i = 0; i < data.scale_count; ++i) {
    factors[i] = ScaleFactorOf(data.input_scale, data.filter_scales[i], data.output_scale);
  }
  static constexpr int32_t kNoBias = 0;
  stage->biases = bias == nullptr ? &kNoBias : micro::GetTensorData<int32_t>(bias);
  stage->bias_step = bias == nullptr ? 0 : 1;
  stage->factors = factors;
  stage->factor_step = data.scale_count > 1 ? 1 : 0;
  stage->offset = data.output_offset;
  stage->activation_min = data.activation_min;
  stage->activation_max = data.activation_max;
  return scratch;
}

}  // namespace tflite
