// Kernel of the custom op SoftShrink: one input, one output of the same shape, element by element.
#include "soft_shrink.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "flatbuffers/flexbuffers.h"
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/kernels/internal/tensor_ctypes.h"
#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/micro_context.h"

namespace tflite {
namespace {

constexpr int kInputTensor = 0;
constexpr int kOutputTensor = 0;
constexpr int kInt8Values = 256;

// What Init and Prepare find out. It lies in the arena and stays there: persistent memory.
struct OpData {
  float lambda = 0.5f;      // the option "lambda": what is taken off on both sides of 0
  int8_t* table = nullptr;  // INT8: the output for each of the 256 possible inputs
};

// What the op computes, of one number. This is the place for your own.
float Compute(float x, const OpData& data) {
  if (x > data.lambda) return x - data.lambda;
  if (x < -data.lambda) return x + data.lambda;
  return 0.0f;
}

float Dequantize(int8_t value, const TfLiteQuantizationParams& params) {
  return static_cast<float>(value - params.zero_point) * params.scale;
}

int8_t Quantize(float value, const TfLiteQuantizationParams& params) {
  const float lowest = static_cast<float>(-128 - params.zero_point);
  const float highest = static_cast<float>(127 - params.zero_point);
  float steps = std::round(value / params.scale);
  if (!(steps > lowest)) steps = lowest;  // a NaN, too
  if (steps > highest) steps = highest;
  return static_cast<int8_t>(static_cast<int>(steps) + params.zero_point);
}

// Runs once, first of all. `buffer` holds the op's custom options as the converter wrote them.
void* Init(TfLiteContext* context, const char* buffer, size_t length) {
  auto* data = static_cast<OpData*>(context->AllocatePersistentBuffer(context, sizeof(OpData)));
  if (data == nullptr) return nullptr;  // no room in the arena: Prepare says so
  *data = OpData();
  if (buffer == nullptr || length == 0) return data;  // a model without options
  const auto* bytes = reinterpret_cast<const uint8_t*>(buffer);
  const flexbuffers::Map options = flexbuffers::GetRoot(bytes, length).AsMap();
  const flexbuffers::Reference lambda = options["lambda"];
  if (!lambda.IsNull()) data->lambda = lambda.AsFloat();
  return data;
}

// An int8 input has 256 values: all float arithmetic is done here, once.
TfLiteStatus FillTable(TfLiteContext* context, OpData* data, const TfLiteTensor* input,
                       const TfLiteTensor* output) {
  data->table = static_cast<int8_t*>(context->AllocatePersistentBuffer(context, kInt8Values));
  TF_LITE_ENSURE(context, data->table != nullptr);
  for (int value = -128; value <= 127; ++value) {
    const float x = Dequantize(static_cast<int8_t>(value), input->params);
    data->table[value + 128] = Quantize(Compute(x, *data), output->params);
  }
  return kTfLiteOk;
}

TfLiteStatus CheckTensors(TfLiteContext* context, OpData* data, const TfLiteTensor* input,
                          const TfLiteTensor* output) {
  TF_LITE_ENSURE(context, input->type == kTfLiteFloat32 || input->type == kTfLiteInt8);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, output->type);
  TF_LITE_ENSURE(context, HaveSameShapes(input, output));
  return input->type == kTfLiteInt8 ? FillTable(context, data, input, output) : kTfLiteOk;
}

// Runs once, when the shapes and types of all tensors are known. A TfLiteTensor, with its
// quantization, is there only for Prepare: temporary memory, given back on every way out.
TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  auto* data = static_cast<OpData*>(node->user_data);
  TF_LITE_ENSURE(context, data != nullptr);
  TF_LITE_ENSURE_EQ(context, NumInputs(node), 1);
  TF_LITE_ENSURE_EQ(context, NumOutputs(node), 1);
  MicroContext* micro_context = GetMicroContext(context);
  TfLiteTensor* input = micro_context->AllocateTempInputTensor(node, kInputTensor);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, kOutputTensor);
  TfLiteStatus status = kTfLiteError;
  if (input != nullptr && output != nullptr) status = CheckTensors(context, data, input, output);
  if (output != nullptr) micro_context->DeallocateTempTfLiteTensor(output);
  if (input != nullptr) micro_context->DeallocateTempTfLiteTensor(input);
  return status;
}

// Runs in every inference. A TfLiteEvalTensor is data, shape and type, and nothing else.
TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const OpData& data = *static_cast<const OpData*>(node->user_data);
  const TfLiteEvalTensor* input = micro::GetEvalInput(context, node, kInputTensor);
  TfLiteEvalTensor* output = micro::GetEvalOutput(context, node, kOutputTensor);
  const int count = micro::GetTensorShape(output).FlatSize();
  if (input->type == kTfLiteInt8) {
    const int8_t* from = micro::GetTensorData<int8_t>(input);
    int8_t* to = micro::GetTensorData<int8_t>(output);
    for (int i = 0; i < count; ++i) to[i] = data.table[from[i] + 128];
  } else {
    const float* from = micro::GetTensorData<float>(input);
    float* to = micro::GetTensorData<float>(output);
    for (int i = 0; i < count; ++i) to[i] = Compute(from[i], data);
  }
  return kTfLiteOk;
}

}  // namespace

TFLMRegistration Register_SOFT_SHRINK() { return micro::RegisterOp(Init, Prepare, Eval); }

}  // namespace tflite
