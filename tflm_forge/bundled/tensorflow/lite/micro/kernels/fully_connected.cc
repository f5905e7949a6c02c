#include "tensorflow/lite/micro/kernels/fully_connected.h"

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/type_check.h"
#include "tensorflow/lite/micro/kernels/weighted_op.h"

namespace tflite {
namespace {

// The filter lies as [output][input].
constexpr int kChannelDimension = 0;

struct MatrixSizes {
  int batches;
  int inputs;
  int outputs;
};

TfLiteStatus DescribeFullyConnected(TfLiteContext* context, const WeightedOpTensors& tensors,
                                    MatrixSizes* sizes) {
  TF_LITE_ENSURE_EQ(context, tensors.filter->dims->size, 2);
  sizes->outputs = tensors.filter->dims->data[0];
  sizes->inputs = tensors.filter->dims->data[1];
  TF_LITE_ENSURE(context, sizes->outputs > 0 && sizes->inputs > 0);
  // 32-bit divisions: the core has seen to it that element counts fit.
  const int input_elements = static_cast<int>(NumElements(tensors.input->dims));
  const int output_elements = static_cast<int>(NumElements(tensors.output->dims));
  sizes->batches = input_elements / sizes->inputs;
  TF_LITE_ENSURE_EQ(context, sizes->batches * sizes->inputs, input_elements);
  TF_LITE_ENSURE_EQ(context, output_elements / sizes->outputs, sizes->batches);
  TF_LITE_ENSURE_EQ(context, sizes->batches * sizes->outputs, output_elements);
  return kTfLiteOk;
}

TfLiteStatus InvokeInt8(TfLiteContext* context, TfLiteNode* node) {
  const auto& data = *static_cast<const WeightedOpData*>(node->user_data);
  const WeightedOpTensors tensors = GetWeightedOpTensors(context, node);
  MatrixSizes sizes;
  TF_LITE_ENSURE_STATUS(DescribeFullyConnected(context, tensors, &sizes));
  ScaleFactor single;
  OutputStage stage;
  PrepareOutputStage(context, data, tensors.bias, &single, &stage);
  const int8_t* input = micro::GetTensorData<int8_t>(tensors.input);
  int8_t* output = micro::GetTensorData<int8_t>(tensors.output);
  for (int batch = 0; batch < sizes.batches; ++batch) {
    MultiplyRows(stage, input, data.input_offset, micro::GetTensorData<int8_t>(tensors.filter),
                 sizes.inputs, 0, sizes.outputs, output);
    input += sizes.inputs;
    output += sizes.outputs;
  }
  return kTfLiteOk;
}

TfLiteStatus InvokeFloat(TfLiteContext* context, TfLiteNode* node) {
  const auto& params = *static_cast<const TfLiteFullyConnectedParams*>(node->builtin_data);
  const WeightedOpTensors tensors = GetWeightedOpTensors(context, node);
  MatrixSizes sizes;
  TF_LITE_ENSURE_STATUS(DescribeFullyConnected(context, tensors, &sizes));
  float activation_min;
  float activation_max;
  CalculateActivationRange(params.activation, &activation_min, &activation_max);
  const float* input = micro::GetTensorData<float>(tensors.input);
  const float* const bias = micro::GetOptionalTensorData<float>(tensors.bias);
  float* output = micro::GetTensorData<float>(tensors.output);
  for (int batch = 0; batch < sizes.batches; ++batch) {
    const float* weight = micro::GetTensorData<float>(tensors.filter);
    for (int channel = 0; channel < sizes.outputs; ++channel) {
      float sum = 0.0f;
      for (int i = 0; i < sizes.inputs; ++i) sum += input[i] * *weight++;
      if (bias != nullptr) sum += bias[channel];
      *output++ = Clamp(sum, activation_min, activation_max);
    }
    input += sizes.inputs;
  }
  return kTfLiteOk;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE(context, node->builtin_data != nullptr);
  const auto& params = *static_cast<const TfLiteFullyConnectedParams*>(node->builtin_data);
  TF_LITE_ENSURE_STATUS(PrepareWeightedOp(context, node, params.activation, kChannelDimension));
  TF_LITE_ENSURE_EQ(context, params.weights_format, kTfLiteFullyConnectedWeightsFormatDefault);
  const WeightedOpTensors tensors = GetWeightedOpTensors(context, node);
  MatrixSizes sizes;
  TF_LITE_ENSURE_STATUS(DescribeFullyConnected(context, tensors, &sizes));
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

TFLMRegistration Register_FULLY_CONNECTED() {
  return micro::RegisterOp(InitWeightedOp, Prepare, Invoke);
}

TFLMRegistration Register_FULLY_CONNECTED_INT8() {
  return micro::RegisterOp(InitWeightedOp, PrepareInt8, InvokeInt8);
}

}  // namespace tflite
