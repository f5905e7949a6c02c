#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/micro_ops.h"
#include "tensorflow/lite/micro/kernels/type_check.h"

namespace tflite {
namespace {

struct DequantizeData {
  float scale;
  int32_t zero_point;
};

void* Init(TfLiteContext* context, const char* /*buffer*/, size_t /*length*/) {
  return context->AllocatePersistentBuffer(context, sizeof(DequantizeData));
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureElementwise(context, node));
  auto* data = static_cast<DequantizeData*>(node->user_data);
  MicroContext* micro_context = GetMicroContext(context);
  TfLiteTensor* input = micro_context->AllocateTempInputTensor(node, 0);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, 0);
  TF_LITE_ENSURE(context, input != nullptr && output != nullptr);
  TF_LITE_ENSURE(context, input->type == kTfLiteInt8 || input->type == kTfLiteUInt8 ||
                              input->type == kTfLiteInt16);
  TF_LITE_ENSURE_TYPES_EQ(context, output->type, kTfLiteFloat32);
  data->scale = input->params.scale;
  data->zero_point = input->params.zero_point;
  micro_context->DeallocateTempTfLiteTensor(output);
  micro_context->DeallocateTempTfLiteTensor(input);
  return kTfLiteOk;
}

// TFLM multiplies in double; with integers of at most 17 bits a float product rounds to the same.
template <typename T>
void Dequantize(const DequantizeData& data, const T* input, int count, float* output) {
  for (int i = 0; i < count; ++i) {
    output[i] = data.scale * static_cast<float>(input[i] - data.zero_point);
  }
}

TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  const auto& data = *static_cast<const DequantizeData*>(node->user_data);
  const TfLiteEvalTensor* input = micro::GetEvalInput(context, node, 0);
  float* const output = micro::GetTensorData<float>(micro::GetEvalOutput(context, node, 0));
  const int count = static_cast<int>(NumElements(input->dims));
  switch (input->type) {
    case kTfLiteInt8:
      Dequantize(data, input->data.int8, count, output);
      return kTfLiteOk;
    case kTfLiteUInt8:
      Dequantize(data, input->data.uint8, count, output);
      return kTfLiteOk;
    case kTfLiteInt16:
      Dequantize(data, input->data.i16, count, output);
      return kTfLiteOk;
    default:
      return kTfLiteError;
  }
}

}  // namespace

TFLMRegistration Register_DEQUANTIZE() { return micro::RegisterOp(Init, Prepare, Invoke); }

}  // namespace tflite
