// Custom ops in TFLM's own form: this file compiles with TFLM and with the bundled runtime.

#include "custom_ops.h"

#include <cstdint>
#include <cstring>

#include "tensorflow/lite/c/builtin_op_data.h"
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/kernels/internal/tensor_ctypes.h"
#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/micro_context.h"
#include "tensorflow/lite/micro/micro_log.h"

namespace {

constexpr int kInputTensor = 0;
constexpr int kStateTensor = 1;
constexpr int kOutputTensor = 0;

struct NegateData {
  int32_t zero_points;
  int32_t added;
  int scratch_index;
  int elements;
};

void* NegateInit(TfLiteContext* context, const char* buffer, size_t length) {
  auto* data =
      static_cast<NegateData*>(context->AllocatePersistentBuffer(context, sizeof(NegateData)));
  if (data == nullptr) return nullptr;
  data->added = length > 0 ? static_cast<int8_t>(buffer[0]) : 0;
  return data;
}

TfLiteStatus NegatePrepare(TfLiteContext* context, TfLiteNode* node) {
  TFLITE_DCHECK(node->user_data != nullptr);
  auto* data = static_cast<NegateData*>(node->user_data);
  TF_LITE_ENSURE_EQ(context, tflite::NumInputs(node), 1);
  TF_LITE_ENSURE_EQ(context, tflite::NumOutputs(node), 1);
  tflite::MicroContext* micro_context = tflite::GetMicroContext(context);
  TfLiteTensor* input = micro_context->AllocateTempInputTensor(node, kInputTensor);
  TF_LITE_ENSURE(context, input != nullptr);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, kOutputTensor);
  TF_LITE_ENSURE(context, output != nullptr);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, kTfLiteInt8);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, output->type);
  TF_LITE_ENSURE(context, tflite::HaveSameShapes(input, output));
  const auto* affine = static_cast<const TfLiteAffineQuantization*>(input->quantization.params);
  TF_LITE_ENSURE(context, affine != nullptr && affine->scale->size == 1);
  TF_LITE_ENSURE_NEAR(context, affine->scale->data[0], output->params.scale, 1e-6f);
  TF_LITE_ENSURE_EQ(context, affine->zero_point->data[0], input->params.zero_point);
  data->zero_points = input->params.zero_point + output->params.zero_point;
  data->elements = static_cast<int>(tflite::NumElements(input));
  const TfLiteStatus status = context->RequestScratchBufferInArena(
      context, data->elements * sizeof(int32_t), &data->scratch_index);
  micro_context->DeallocateTempTfLiteTensor(input);
  micro_context->DeallocateTempTfLiteTensor(output);
  return status;
}

TfLiteStatus NegateInvoke(TfLiteContext* context, TfLiteNode* node) {
  const auto* data = static_cast<const NegateData*>(node->user_data);
  const TfLiteEvalTensor* input = tflite::micro::GetEvalInput(context, node, kInputTensor);
  TfLiteEvalTensor* output = tflite::micro::GetEvalOutput(context, node, kOutputTensor);
  const int8_t* from = tflite::micro::GetTensorData<int8_t>(input);
  int8_t* to = tflite::micro::GetTensorData<int8_t>(output);
  auto* wide = static_cast<int32_t*>(context->GetScratchBuffer(context, data->scratch_index));
  TF_LITE_ENSURE(context, wide != nullptr);
  TF_LITE_ENSURE_EQ(context, tflite::micro::GetTensorShape(input).FlatSize(), data->elements);
  for (int i = 0; i < data->elements; ++i) wide[i] = data->zero_points + data->added - from[i];
  for (int i = 0; i < data->elements; ++i) {
    const int32_t low = wide[i] < -128 ? -128 : wide[i];
    to[i] = static_cast<int8_t>(low > 127 ? 127 : low);
  }
  return kTfLiteOk;
}

TfLiteStatus AccumulatePrepare(TfLiteContext* context, TfLiteNode* node) {
  tflite::MicroContext* micro_context = tflite::GetMicroContext(context);
  TfLiteTensor* state = micro_context->AllocateTempInputTensor(node, kStateTensor);
  TF_LITE_ENSURE(context, state != nullptr);
  TF_LITE_ENSURE(context, state->is_variable);
  TF_LITE_ENSURE_TYPES_EQ(context, state->type, kTfLiteInt32);
  micro_context->DeallocateTempTfLiteTensor(state);
  return kTfLiteOk;
}

TfLiteStatus AccumulateInvoke(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteEvalTensor* input = tflite::micro::GetEvalInput(context, node, kInputTensor);
  TfLiteEvalTensor* state = tflite::micro::GetMutableEvalInput(context, node, kStateTensor);
  TfLiteEvalTensor* output = tflite::micro::GetEvalOutput(context, node, kOutputTensor);
  TF_LITE_ENSURE(context, tflite::micro::HaveSameShapes(input, state));
  const int elements = tflite::micro::GetTensorShape(input).FlatSize();
  for (int i = 0; i < elements; ++i) {
    state->data.i32[i] += input->data.i32[i];
    output->data.i32[i] = state->data.i32[i];
  }
  return kTfLiteOk;
}

void AccumulateReset(TfLiteContext*, void*) { MicroPrintf("TestAccumulate reset"); }

void AccumulateFree(TfLiteContext*, void*) { MicroPrintf("TestAccumulate freed"); }

}  // namespace

TFLMRegistration* Register_TEST_NEGATE() {
  static TFLMRegistration registration =
      tflite::micro::RegisterOp(NegateInit, NegatePrepare, NegateInvoke);
  return &registration;
}

TFLMRegistration* Register_TEST_ACCUMULATE() {
  static TFLMRegistration registration = tflite::micro::RegisterOp(
      nullptr, AccumulatePrepare, AccumulateInvoke, AccumulateFree, AccumulateReset);
  return &registration;
}
