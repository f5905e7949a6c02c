#include "tensorflow/lite/micro/kernels/pooling.h"

#include <limits>

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/fixed_point.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/type_check.h"
#include "tensorflow/lite/micro/kernels/window.h"

namespace tflite {
namespace {

// TFLM's tolerance between the scales of input and output, which must be the same.
constexpr float kScaleTolerance = 1.0e-6f;

struct PoolingData {
  int16_t activation_min;
  int16_t activation_max;
};

// The value of one output from those under the window, `step` apart within a row.
struct AverageInt8 {
  using Type = int8_t;
  int32_t sum = 0;
  void Add(int8_t value) { sum += value; }
  int32_t Result(int count) const { return (sum > 0 ? sum + count / 2 : sum - count / 2) / count; }
};

struct MaxInt8 {
  using Type = int8_t;
  int32_t largest = INT8_MIN;
  void Add(int8_t value) {
    if (value > largest) largest = value;
  }
  int32_t Result(int /*count*/) const { return largest; }
};

struct AverageFloat {
  using Type = float;
  float sum = 0.0f;
  void Add(float value) { sum += value; }
  float Result(int count) const { return sum / static_cast<float>(count); }
};

struct MaxFloat {
  using Type = float;
  float largest = std::numeric_limits<float>::lowest();
  void Add(float value) {
    if (value > largest) largest = value;
  }
  float Result(int /*count*/) const { return largest; }
};

TfLiteStatus DescribePooling(TfLiteContext* context, TfLiteNode* node,
                             const TfLitePoolParams& params, WindowGeometry* geometry) {
  geometry->filter_height = params.filter_height;
  geometry->filter_width = params.filter_width;
  geometry->stride_height = params.stride_height;
  geometry->stride_width = params.stride_width;
  geometry->dilation_height = 1;
  geometry->dilation_width = 1;
  TF_LITE_ENSURE_STATUS(CompleteGeometry(context, micro::GetEvalInput(context, node, 0),
                                         micro::GetEvalOutput(context, node, 0), params.padding,
                                         geometry));
  TF_LITE_ENSURE_EQ(context, geometry->in_depth, geometry->out_depth);
  return kTfLiteOk;
}

template <typename Pool>
TfLiteStatus Pooling(TfLiteContext* context, TfLiteNode* node, decltype(Pool().Result(1)) low,
                     decltype(Pool().Result(1)) high) {
  using Type = typename Pool::Type;
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  WindowGeometry geometry;
  TF_LITE_ENSURE_STATUS(DescribePooling(context, node, params, &geometry));
  const Type* const input = micro::GetTensorData<Type>(micro::GetEvalInput(context, node, 0));
  Type* output = micro::GetTensorData<Type>(micro::GetEvalOutput(context, node, 0));
  const int depth = geometry.in_depth;
  WindowCursor window(geometry);
  while (window.Next()) {
    TF_LITE_ENSURE(context, window.tap_count() > 0);
    for (int channel = 0; channel < depth; ++channel) {
      Pool pool;
      for (int row = 0; row < window.rows(); ++row) {
        const Type* source = input + window.InputPixel(row) * depth + channel;
        for (int column = 0; column < window.columns(); ++column) {
          pool.Add(*source);
          source += depth;
        }
      }
      *output++ = static_cast<Type>(Clamp(pool.Result(window.tap_count()), low, high));
    }
  }
  return kTfLiteOk;
}

template <typename Pool>
TfLiteStatus InvokeInt8(TfLiteContext* context, TfLiteNode* node) {
  const auto& data = *static_cast<const PoolingData*>(node->user_data);
  return Pooling<Pool>(context, node, data.activation_min, data.activation_max);
}

template <typename Int8Pool, typename FloatPool>
TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  if (micro::GetEvalInput(context, node, 0)->type == kTfLiteInt8) {
    return InvokeInt8<Int8Pool>(context, node);
  }
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  float activation_min;
  float activation_max;
  CalculateActivationRange(params.activation, &activation_min, &activation_max);
  return Pooling<FloatPool>(context, node, activation_min, activation_max);
}

void* Init(TfLiteContext* context, const char* /*buffer*/, size_t /*length*/) {
  return context->AllocatePersistentBuffer(context, sizeof(PoolingData));
}

TfLiteStatus CheckQuantization(TfLiteContext* context, const TfLitePoolParams& params,
                               const TfLiteTensor* input, TfLiteTensor* output, PoolingData* data) {
  const float difference = input->params.scale - output->params.scale;
  TF_LITE_ENSURE(context, difference <= kScaleTolerance && -difference <= kScaleTolerance);
  TF_LITE_ENSURE_EQ(context, static_cast<int>(input->params.zero_point),
                    static_cast<int>(output->params.zero_point));
  int32_t activation_min = 0;
  int32_t activation_max = 0;
  TF_LITE_ENSURE_STATUS(CalculateActivationRangeQuantized(context, params.activation, output,
                                                          &activation_min, &activation_max));
  data->activation_min = static_cast<int16_t>(activation_min);
  data->activation_max = static_cast<int16_t>(activation_max);
  return kTfLiteOk;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE(context, node->builtin_data != nullptr && node->user_data != nullptr);
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  TF_LITE_ENSURE_STATUS(EnsureOneInputOneOutput(context, node));
  MicroContext* micro_context = GetMicroContext(context);
  TfLiteTensor* input = micro_context->AllocateTempInputTensor(node, 0);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, 0);
  TF_LITE_ENSURE(context, input != nullptr && output != nullptr);
  TF_LITE_ENSURE(context, input->type == kTfLiteFloat32 || input->type == kTfLiteInt8);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, output->type);
  if (input->type == kTfLiteInt8) {
    TF_LITE_ENSURE_STATUS(CheckQuantization(context, params, input, output,
                                            static_cast<PoolingData*>(node->user_data)));
  }
  micro_context->DeallocateTempTfLiteTensor(output);
  micro_context->DeallocateTempTfLiteTensor(input);
  WindowGeometry geometry;
  return DescribePooling(context, node, params, &geometry);
}

TfLiteStatus PrepareInt8(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureInt8(context, micro::GetEvalInput(context, node, 0)));
  return Prepare(context, node);
}

}  // namespace

TFLMRegistration Register_AVERAGE_POOL_2D() {
  return micro::RegisterOp(Init, Prepare, Invoke<AverageInt8, AverageFloat>);
}

TFLMRegistration Register_MAX_POOL_2D() {
  return micro::RegisterOp(Init, Prepare, Invoke<MaxInt8, MaxFloat>);
}

TFLMRegistration Register_AVERAGE_POOL_2D_INT8() {
  return micro::RegisterOp(Init, PrepareInt8, InvokeInt8<AverageInt8>);
}

TFLMRegistration Register_MAX_POOL_2D_INT8() {
  return micro::RegisterOp(Init, PrepareInt8, InvokeInt8<MaxInt8>);
}

}  // namespace tflite
