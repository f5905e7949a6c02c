// RELU and RELU6.

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/fixed_point.h"
#include "tensorflow/lite/micro/kernels/float_rounding.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/micro_ops.h"
#include "tensorflow/lite/micro/kernels/type_check.h"

namespace tflite {
namespace {

constexpr float kSix = 6.0f;

// RELU rescales from the input's quantization to the output's; RELU6 takes them to be the same.
struct ReluData {
  ScaleFactor factor;
  int16_t input_offset;
  int16_t output_offset;
};

struct Relu6Data {
  int8_t zero;
  int8_t six;
};

void* InitRelu(TfLiteContext* context, const char* /*buffer*/, size_t /*length*/) {
  return context->AllocatePersistentBuffer(context, sizeof(ReluData));
}

void* InitRelu6(TfLiteContext* context, const char* /*buffer*/, size_t /*length*/) {
  return context->AllocatePersistentBuffer(context, sizeof(Relu6Data));
}

TfLiteStatus CheckTypes(TfLiteContext* context, const TfLiteTensor* input,
                        const TfLiteTensor* output) {
  TF_LITE_ENSURE(context, input != nullptr && output != nullptr);
  TF_LITE_ENSURE(context, input->type == kTfLiteFloat32 || input->type == kTfLiteInt8);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, output->type);
  return kTfLiteOk;
}

TfLiteStatus PrepareRelu(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureElementwise(context, node));
  MicroContext* micro_context = GetMicroContext(context);
  TfLiteTensor* input = micro_context->AllocateTempInputTensor(node, 0);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, 0);
  TF_LITE_ENSURE_STATUS(CheckTypes(context, input, output));
  if (input->type == kTfLiteInt8) {
    TF_LITE_ENSURE(context, input->params.scale > 0.0f && output->params.scale > 0.0f);
    auto* data = static_cast<ReluData*>(node->user_data);
    data->factor = ScaleFactorOf(input->params.scale / output->params.scale, 1.0f, 1.0f);
    data->input_offset = static_cast<int16_t>(-input->params.zero_point);
    data->output_offset = static_cast<int16_t>(output->params.zero_point);
  }
  micro_context->DeallocateTempTfLiteTensor(output);
  micro_context->DeallocateTempTfLiteTensor(input);
  return kTfLiteOk;
}

TfLiteStatus PrepareRelu6(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureElementwise(context, node));
  MicroContext* micro_context = GetMicroContext(context);
  TfLiteTensor* input = micro_context->AllocateTempInputTensor(node, 0);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, 0);
  TF_LITE_ENSURE_STATUS(CheckTypes(context, input, output));
  if (input->type == kTfLiteInt8) {
    TF_LITE_ENSURE(context, input->params.scale > 0.0f);
    auto* data = static_cast<Relu6Data*>(node->user_data);
    const int32_t zero = input->params.zero_point;
    data->zero = static_cast<int8_t>(zero);
    data->six = static_cast<int8_t>(
        Clamp<int32_t>(RoundToInt(kSix / input->params.scale) + zero, INT8_MIN, INT8_MAX));
  }
  micro_context->DeallocateTempTfLiteTensor(output);
  micro_context->DeallocateTempTfLiteTensor(input);
  return kTfLiteOk;
}

template <typename T, typename Function>
void MapElements(TfLiteContext* context, TfLiteNode* node, Function function) {
  const TfLiteEvalTensor* input_tensor = micro::GetEvalInput(context, node, 0);
  const T* const input = micro::GetTensorData<T>(input_tensor);
  T* const output = micro::GetTensorData<T>(micro::GetEvalOutput(context, node, 0));
  const int count = static_cast<int>(NumElements(input_tensor->dims));
  for (int i = 0; i < count; ++i) output[i] = function(input[i]);
}

TfLiteStatus InvokeRelu(TfLiteContext* context, TfLiteNode* node) {
  if (micro::GetEvalInput(context, node, 0)->type == kTfLiteFloat32) {
    MapElements<float>(context, node, [](float value) { return value < 0.0f ? 0.0f : value; });
    return kTfLiteOk;
  }
  const auto& data = *static_cast<const ReluData*>(node->user_data);
  MapElements<int8_t>(context, node, [&data](int8_t value) {
    const int32_t scaled = Rescale(value + data.input_offset, data.factor) + data.output_offset;
    return static_cast<int8_t>(Clamp<int32_t>(scaled, data.output_offset, INT8_MAX));
  });
  return kTfLiteOk;
}

TfLiteStatus InvokeRelu6(TfLiteContext* context, TfLiteNode* node) {
  if (micro::GetEvalInput(context, node, 0)->type == kTfLiteFloat32) {
    MapElements<float>(context, node, [](float value) { return Clamp(value, 0.0f, kSix); });
    return kTfLiteOk;
  }
  const auto& data = *static_cast<const Relu6Data*>(node->user_data);
  MapElements<int8_t>(context, node,
                      [&data](int8_t value) { return Clamp(value, data.zero, data.six); });
  return kTfLiteOk;
}

}  // namespace

TFLMRegistration Register_RELU() { return micro::RegisterOp(InitRelu, PrepareRelu, InvokeRelu); }

TFLMRegistration Register_RELU6() {
  return micro::RegisterOp(InitRelu6, PrepareRelu6, InvokeRelu6);
}

}  // namespace tflite
