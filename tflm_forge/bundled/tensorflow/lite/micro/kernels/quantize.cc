#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/fixed_point.h"
#include "tensorflow/lite/micro/kernels/float_rounding.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/micro_ops.h"
#include "tensorflow/lite/micro/kernels/type_check.h"

namespace tflite {
namespace {

struct QuantizeData {
  ScaleFactor factor;  // between two integer types
  float output_scale;  // from float
  int32_t input_zero_point;
  int32_t output_zero_point;
};

void* Init(TfLiteContext* context, const char* /*buffer*/, size_t /*length*/) {
  return context->AllocatePersistentBuffer(context, sizeof(QuantizeData));
}

// What TFLM's kernel converts.
bool IsSupported(TfLiteType input, TfLiteType output) {
  switch (input) {
    case kTfLiteFloat32:
    case kTfLiteInt32:
      return output == kTfLiteInt8 || output == kTfLiteInt16;
    case kTfLiteInt16:
      return output == kTfLiteInt8 || output == kTfLiteInt16 || output == kTfLiteInt32;
    case kTfLiteInt8:
      return output == kTfLiteInt8 || output == kTfLiteUInt8 || output == kTfLiteInt16 ||
             output == kTfLiteInt32;
    case kTfLiteUInt8:
      return output == kTfLiteInt8;
    default:
      return false;
  }
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureElementwise(context, node));
  auto* data = static_cast<QuantizeData*>(node->user_data);
  MicroContext* micro_context = GetMicroContext(context);
  TfLiteTensor* input = micro_context->AllocateTempInputTensor(node, 0);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, 0);
  TF_LITE_ENSURE(context, input != nullptr && output != nullptr);
  TF_LITE_ENSURE(context, IsSupported(input->type, output->type));
  TF_LITE_ENSURE_EQ(context, output->quantization.type, kTfLiteAffineQuantization);
  const auto* affine = static_cast<const TfLiteAffineQuantization*>(output->quantization.params);
  TF_LITE_ENSURE(context, affine != nullptr && affine->scale != nullptr);
  TF_LITE_ENSURE_EQ(context, affine->scale->size, 1);
  TF_LITE_ENSURE(context, output->params.scale > 0.0f);
  data->output_scale = output->params.scale;
  data->output_zero_point = output->params.zero_point;
  data->input_zero_point = input->params.zero_point;
  if (input->type != kTfLiteFloat32) {
    data->factor = ScaleFactorOf(input->params.scale, 1.0f, output->params.scale);
  }
  micro_context->DeallocateTempTfLiteTensor(output);
  micro_context->DeallocateTempTfLiteTensor(input);
  return kTfLiteOk;
}

int32_t LoadInteger(const TfLiteEvalTensor* tensor, int index) {
  switch (tensor->type) {
    case kTfLiteInt8:
      return tensor->data.int8[index];
    case kTfLiteUInt8:
      return tensor->data.uint8[index];
    case kTfLiteInt16:
      return tensor->data.i16[index];
    default:
      return tensor->data.i32[index];
  }
}

void StoreSaturated(int32_t value, TfLiteEvalTensor* tensor, int index) {
  switch (tensor->type) {
    case kTfLiteInt8:
      tensor->data.int8[index] = static_cast<int8_t>(Clamp<int32_t>(value, INT8_MIN, INT8_MAX));
      return;
    case kTfLiteUInt8:
      tensor->data.uint8[index] = static_cast<uint8_t>(Clamp<int32_t>(value, 0, UINT8_MAX));
      return;
    case kTfLiteInt16:
      tensor->data.i16[index] = static_cast<int16_t>(Clamp<int32_t>(value, INT16_MIN, INT16_MAX));
      return;
    default:
      tensor->data.i32[index] = value;
  }
}

TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  const auto& data = *static_cast<const QuantizeData*>(node->user_data);
  const TfLiteEvalTensor* input = micro::GetEvalInput(context, node, 0);
  TfLiteEvalTensor* output = micro::GetEvalOutput(context, node, 0);
  const int count = static_cast<int>(NumElements(input->dims));
  for (int i = 0; i < count; ++i) {
    const int32_t value = input->type == kTfLiteFloat32
                              ? RoundToInt(input->data.f[i] / data.output_scale)
                              : Rescale(LoadInteger(input, i) - data.input_zero_point, data.factor);
    StoreSaturated(value + data.output_zero_point, output, i);
  }
  return kTfLiteOk;
}

}  // namespace

TFLMRegistration Register_QUANTIZE() { return micro::RegisterOp(Init, Prepare, Invoke); }

}  // namespace tflite
