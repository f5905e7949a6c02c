#include "tensorflow/lite/micro/kernels/type_check.h"

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/micro_log.h"

namespace tflite {

TfLiteStatus EnsureInt8(TfLiteContext* context, const TfLiteEvalTensor* tensor) {
  TF_LITE_ENSURE(context, tensor != nullptr);
  if (tensor->type == kTfLiteInt8) return kTfLiteOk;
  MicroPrintf("Type %s (%d) not supported by an int8 kernel.", TfLiteTypeGetName(tensor->type),
              tensor->type);
  return kTfLiteError;
}

TfLiteStatus EnsureOneInputOneOutput(TfLiteContext* context, const TfLiteNode* node) {
  TF_LITE_ENSURE_EQ(context, NumInputs(node), 1);
  TF_LITE_ENSURE_EQ(context, NumOutputs(node), 1);
  return kTfLiteOk;
}

TfLiteStatus EnsureElementwise(TfLiteContext* context, const TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureOneInputOneOutput(context, node));
  const TfLiteEvalTensor* input = micro::GetEvalInput(context, node, 0);
  const TfLiteEvalTensor* output = micro::GetEvalOutput(context, node, 0);
  TF_LITE_ENSURE(context, input != nullptr && output != nullptr);
  TF_LITE_ENSURE(context, NumElements(input->dims) == NumElements(output->dims));
  return kTfLiteOk;
}

}  // namespace tflite
