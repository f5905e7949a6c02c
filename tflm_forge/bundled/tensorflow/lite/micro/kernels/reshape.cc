#include <cstring>

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/micro_ops.h"
#include "tensorflow/lite/micro/memory_helpers.h"

namespace tflite {
namespace {

// One dimension of the output may be -1: what is left of the input's elements.
TfLiteStatus FillOpenDimension(TfLiteContext* context, int input_elements,
                               TfLiteEvalTensor* output) {
  const TfLiteIntArray* dims = output->dims;
  int open = -1;
  int known_elements = 1;
  for (int i = 0; i < dims->size; ++i) {
    if (dims->data[i] == -1) {
      TF_LITE_ENSURE_EQ(context, open, -1);
      open = i;
    } else {
      TF_LITE_ENSURE(context, dims->data[i] > 0 && dims->data[i] <= input_elements);
      known_elements *= dims->data[i];
      TF_LITE_ENSURE(context, known_elements <= input_elements);
    }
  }
  TF_LITE_ENSURE(context, open >= 0);
  const size_t bytes = TfLiteIntArrayGetSizeInBytes(dims->size);
  auto* filled = static_cast<TfLiteIntArray*>(context->AllocatePersistentBuffer(context, bytes));
  TF_LITE_ENSURE(context, filled != nullptr);
  memcpy(filled, dims, bytes);
  filled->data[open] = input_elements / known_elements;
  output->dims = filled;
  return kTfLiteOk;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE(context, NumInputs(node) == 1 || NumInputs(node) == 2);
  TF_LITE_ENSURE_EQ(context, NumOutputs(node), 1);
  const TfLiteEvalTensor* input = micro::GetEvalInput(context, node, 0);
  TfLiteEvalTensor* output = micro::GetEvalOutput(context, node, 0);
  TF_LITE_ENSURE(context, input != nullptr);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, output->type);
  size_t input_bytes, output_bytes;
  TF_LITE_ENSURE_STATUS(TfLiteEvalTensorByteLength(input, &input_bytes));
  if (TfLiteEvalTensorByteLength(output, &output_bytes) != kTfLiteOk) {
    const int elements = static_cast<int>(NumElements(input->dims));
    TF_LITE_ENSURE_STATUS(FillOpenDimension(context, elements, output));
    TF_LITE_ENSURE_STATUS(TfLiteEvalTensorByteLength(output, &output_bytes));
  }
  TF_LITE_ENSURE(context, input_bytes == output_bytes);
  return kTfLiteOk;
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteEvalTensor* input = micro::GetEvalInput(context, node, 0);
  TfLiteEvalTensor* output = micro::GetEvalOutput(context, node, 0);
  size_t bytes;
  TF_LITE_ENSURE_STATUS(TfLiteEvalTensorByteLength(output, &bytes));
  if (input->data.raw != output->data.raw) memcpy(output->data.raw, input->data.raw, bytes);
  return kTfLiteOk;
}

}  // namespace

TFLMRegistration Register_RESHAPE() { return micro::RegisterOp(nullptr, Prepare, Eval); }

}  // namespace tflite
