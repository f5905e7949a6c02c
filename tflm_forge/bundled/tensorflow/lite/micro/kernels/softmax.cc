#include "tensorflow/lite/micro/kernels/softmax.h"

#include <cmath>

#include "tensorflow/lite/micro/kernels/fixed_point.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/type_check.h"

namespace tflite {
namespace {

// Differences from the greatest input, times beta, are Q5.26; sums of exponentials are Q12.19.
constexpr int kDifferenceIntegerBits = 5;
constexpr int kDifferenceFractionBits = 31 - kDifferenceIntegerBits;
constexpr int kSumIntegerBits = 12;
// 512: half of the 256 steps of the output, and with that every share, rounds to 0. TFLM stops
// there.
constexpr int32_t kEndlessSum = 512 << (31 - kSumIntegerBits);
// A shift that multiplies the smallest difference by 2^31 saturates every other exponential to 0.
constexpr ScaleFactor kGreatestFactor = {INT32_MAX, 31};

struct SoftmaxData {
  ScaleFactor factor;
  int32_t least_difference;  // below this the exponential counts as 0
};

struct Rows {
  int count;
  int length;
};

Rows RowsOf(const TfLiteEvalTensor* tensor) {
  const TfLiteIntArray& dims = *tensor->dims;
  Rows rows = {1, dims.data[dims.size - 1]};
  for (int i = 0; i < dims.size - 1; ++i) rows.count *= dims.data[i];
  return rows;
}

template <typename T>
T GreatestOf(const T* values, int length) {
  T greatest = values[0];
  for (int i = 1; i < length; ++i) {
    if (values[i] > greatest) greatest = values[i];
  }
  return greatest;
}

int32_t ExpOfDifference(const SoftmaxData& data, int32_t difference) {
  return ExpOfNegative(Rescale(difference, data.factor), kDifferenceIntegerBits);
}

void SoftmaxRow(const SoftmaxData& data, const int8_t* input, int length, int8_t* output) {
  const int32_t greatest = GreatestOf(input, length);
  int32_t sum = 0;
  for (int i = 0; i < length && sum < kEndlessSum; ++i) {
    const int32_t difference = input[i] - greatest;
    if (difference < data.least_difference) continue;
    sum += RoundingShiftRight(ExpOfDifference(data, difference), kSumIntegerBits);
  }
  // sum = (1 + fraction) * 2^(kSumIntegerBits - headroom), fraction in [0, 1).
  const int headroom = __builtin_clz(static_cast<uint32_t>(sum));
  const uint32_t normalized = static_cast<uint32_t>(sum) << headroom;
  const int32_t reciprocal = ReciprocalOfOnePlus(static_cast<int32_t>(normalized - (1u << 31)));
  const int exponent = kSumIntegerBits - headroom + 31 - 8;
  for (int i = 0; i < length; ++i) {
    const int32_t difference = input[i] - greatest;
    output[i] = INT8_MIN;
    if (difference < data.least_difference) continue;
    const int32_t share = RoundingHighMultiply(reciprocal, ExpOfDifference(data, difference));
    const int32_t rounded = INT8_MIN + (exponent > 31 ? 0 : RoundingShiftRight(share, exponent));
    output[i] = static_cast<int8_t>(rounded > INT8_MAX ? INT8_MAX : rounded);
  }
}

TfLiteStatus InvokeInt8(TfLiteContext* context, TfLiteNode* node) {
  const auto& data = *static_cast<const SoftmaxData*>(node->user_data);
  const TfLiteEvalTensor* input = micro::GetEvalInput(context, node, 0);
  TfLiteEvalTensor* output = micro::GetEvalOutput(context, node, 0);
  const Rows rows = RowsOf(input);
  for (int row = 0; row < rows.count; ++row) {
    const int start = row * rows.length;
    SoftmaxRow(data, micro::GetTensorData<int8_t>(input) + start, rows.length,
               micro::GetTensorData<int8_t>(output) + start);
  }
  return kTfLiteOk;
}

TfLiteStatus InvokeFloat(TfLiteContext* context, TfLiteNode* node) {
  const float beta = static_cast<const TfLiteSoftmaxParams*>(node->builtin_data)->beta;
  const TfLiteEvalTensor* input_tensor = micro::GetEvalInput(context, node, 0);
  const float* input = micro::GetTensorData<float>(input_tensor);
  float* output = micro::GetTensorData<float>(micro::GetEvalOutput(context, node, 0));
  const Rows rows = RowsOf(input_tensor);
  for (int row = 0; row < rows.count; ++row) {
    const float greatest = GreatestOf(input, rows.length);
    float sum = 0.0f;
    for (int i = 0; i < rows.length; ++i) {
      output[i] = expf((input[i] - greatest) * beta);
      sum += output[i];
    }
    for (int i = 0; i < rows.length; ++i) output[i] /= sum;
    input += rows.length;
    output += rows.length;
  }
  return kTfLiteOk;
}

TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  const bool is_int8 = micro::GetEvalInput(context, node, 0)->type == kTfLiteInt8;
  return is_int8 ? InvokeInt8(context, node) : InvokeFloat(context, node);
}

void* Init(TfLiteContext* context, const char* /*buffer*/, size_t /*length*/) {
  return context->AllocatePersistentBuffer(context, sizeof(SoftmaxData));
}

TfLiteStatus PrepareQuantization(TfLiteContext* context, float beta, const TfLiteTensor* input,
                                 const TfLiteTensor* output, SoftmaxData* data) {
  TF_LITE_ENSURE_EQ(context, static_cast<int>(output->params.zero_point), -128);
  TF_LITE_ENSURE(context, output->params.scale == 1.0f / 256);
  data->factor = ScaleFactorOf(beta, input->params.scale, 1.0f);
  data->factor.shift += kDifferenceFractionBits;
  if (data->factor.shift > kGreatestFactor.shift) data->factor = kGreatestFactor;
  // The product must be above 1.
  TF_LITE_ENSURE(context, data->factor.multiplier > 0 && data->factor.shift > 0);
  constexpr int32_t kGreatestDifference = ((1 << kDifferenceIntegerBits) - 1)
                                          << kDifferenceFractionBits;
  data->least_difference = -(kGreatestDifference >> data->factor.shift);
  return kTfLiteOk;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureElementwise(context, node));
  TF_LITE_ENSURE(context, node->builtin_data != nullptr && node->user_data != nullptr);
  const auto& params = *static_cast<const TfLiteSoftmaxParams*>(node->builtin_data);
  MicroContext* micro_context = GetMicroContext(context);
  TfLiteTensor* input = micro_context->AllocateTempInputTensor(node, 0);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, 0);
  TF_LITE_ENSURE(context, input != nullptr && output != nullptr);
  TF_LITE_ENSURE(context, input->type == kTfLiteFloat32 || input->type == kTfLiteInt8);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, output->type);
  TF_LITE_ENSURE(context, input->dims->size >= 1 && input->dims->data[input->dims->size - 1] > 0);
  if (input->type == kTfLiteInt8) {
    TF_LITE_ENSURE_STATUS(PrepareQuantization(context, params.beta, input, output,
                                              static_cast<SoftmaxData*>(node->user_data)));
  }
  micro_context->DeallocateTempTfLiteTensor(output);
  micro_context->DeallocateTempTfLiteTensor(input);
  return kTfLiteOk;
}

TfLiteStatus PrepareInt8(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureInt8(context, micro::GetEvalInput(context, node, 0)));
  return Prepare(context, node);
}

}  // namespace

TFLMRegistration Register_SOFTMAX() { return micro::RegisterOp(Init, Prepare, Invoke); }

TFLMRegistration Register_SOFTMAX_INT8() {
  return micro::RegisterOp(Init, PrepareInt8, InvokeInt8);
}

}  // namespace tflite
