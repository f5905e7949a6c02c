#include <cmath>

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/fixed_point.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/micro_ops.h"
#include "tensorflow/lite/micro/kernels/type_check.h"

namespace tflite {
namespace {

// Inputs are brought to Q4.27.
constexpr int kInputIntegerBits = 4;
constexpr int kInputFractionBits = 31 - kInputIntegerBits;

// Beyond these a float result is 1, or as good as exp(x).
constexpr float kUpperCutoff = 16.619047164916992188f;
constexpr float kLowerCutoff = -9.0f;

struct LogisticData {
  ScaleFactor factor;
  int32_t radius;  // from here on the result is 0 or 1
  int32_t input_offset;
};

void* Init(TfLiteContext* context, const char* /*buffer*/, size_t /*length*/) {
  return context->AllocatePersistentBuffer(context, sizeof(LogisticData));
}

TfLiteStatus PrepareQuantization(TfLiteContext* context, const TfLiteTensor* input,
                                 const TfLiteTensor* output, LogisticData* data) {
  TF_LITE_ENSURE_EQ(context, static_cast<int>(output->params.zero_point), -128);
  data->factor = ScaleFactorOf(input->params.scale, 1.0f, 1.0f);
  data->factor.shift += kInputFractionBits;
  data->input_offset = -input->params.zero_point;
  TF_LITE_ENSURE(context, data->factor.multiplier > 0 && data->factor.shift >= 0);
  constexpr int32_t kGreatestInput = ((1 << kInputIntegerBits) - 1) << kInputFractionBits;
  data->radius = data->factor.shift > 31 ? 0 : kGreatestInput >> data->factor.shift;
  return kTfLiteOk;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureElementwise(context, node));
  MicroContext* micro_context = GetMicroContext(context);
  TfLiteTensor* input = micro_context->AllocateTempInputTensor(node, 0);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, 0);
  TF_LITE_ENSURE(context, input != nullptr && output != nullptr);
  TF_LITE_ENSURE(context, input->type == kTfLiteFloat32 || input->type == kTfLiteInt8);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, output->type);
  if (input->type == kTfLiteInt8) {
    TF_LITE_ENSURE_STATUS(
        PrepareQuantization(context, input, output, static_cast<LogisticData*>(node->user_data)));
  }
  micro_context->DeallocateTempTfLiteTensor(output);
  micro_context->DeallocateTempTfLiteTensor(input);
  return kTfLiteOk;
}

int8_t LogisticInt8(const LogisticData& data, int8_t value) {
  const int32_t input = value + data.input_offset;
  if (input <= -data.radius) return INT8_MIN;
  if (input >= data.radius) return INT8_MAX;
  int32_t result = 1 << 30;  // logistic(0) = 1/2
  if (input != 0) {
    const int32_t magnitude = Rescale(input, data.factor);
    const int32_t negative = magnitude < 0 ? magnitude : -magnitude;
    result = ReciprocalOfOnePlus(ExpOfNegative(negative, kInputIntegerBits));
    if (input < 0) result = INT32_MAX - result;
  }
  const int32_t rounded = RoundingShiftRight(result, 31 - 8) + INT8_MIN;
  return static_cast<int8_t>(rounded > INT8_MAX ? INT8_MAX : rounded);
}

float LogisticFloat(float value) {
  if (value > kUpperCutoff) return 1.0f;
  if (value < kLowerCutoff) return expf(value);
  return 1.0f / (1.0f + expf(-value));
}

TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteEvalTensor* input = micro::GetEvalInput(context, node, 0);
  TfLiteEvalTensor* output = micro::GetEvalOutput(context, node, 0);
  const int count = static_cast<int>(NumElements(input->dims));
  if (input->type == kTfLiteInt8) {
    const auto& data = *static_cast<const LogisticData*>(node->user_data);
    const int8_t* const values = micro::GetTensorData<int8_t>(input);
    int8_t* const results = micro::GetTensorData<int8_t>(output);
    for (int i = 0; i < count; ++i) results[i] = LogisticInt8(data, values[i]);
    return kTfLiteOk;
  }
  const float* const values = micro::GetTensorData<float>(input);
  float* const results = micro::GetTensorData<float>(output);
  for (int i = 0; i < count; ++i) results[i] = LogisticFloat(values[i]);
  return kTfLiteOk;
}

}  // namespace

TFLMRegistration Register_LOGISTIC() { return micro::RegisterOp(Init, Prepare, Invoke); }

}  // namespace tflite
