#include "tensorflow/lite/micro/kernels/add.h"

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/fixed_point.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/type_check.h"

namespace tflite {
namespace {

constexpr int kInput1 = 0;
constexpr int kInput2 = 1;
constexpr int kOutput = 0;
constexpr int kMaxDimensions = 6;

// Inputs gain this many bits before they are brought to one scale, twice the greater of theirs.
constexpr int kLeftShift = 20;
constexpr float kHalf = 0.5f;
constexpr float kTwiceOverLeftShift = 2.0f / (1 << kLeftShift);

struct AddData {
  ScaleFactor factor1;
  ScaleFactor factor2;
  ScaleFactor output_factor;
  int16_t offset1;
  int16_t offset2;
  int16_t output_offset;
  int16_t activation_min;
  int16_t activation_max;
};

struct AddTensors {
  const TfLiteEvalTensor* input1;
  const TfLiteEvalTensor* input2;
  TfLiteEvalTensor* output;
};

AddTensors GetAddTensors(TfLiteContext* context, TfLiteNode* node) {
  return {micro::GetEvalInput(context, node, kInput1), micro::GetEvalInput(context, node, kInput2),
          micro::GetEvalOutput(context, node, kOutput)};
}

// Size of the dimension that is `from_last` before the last one; missing ones count as 1.
int DimensionFromLast(const TfLiteIntArray& dims, int from_last) {
  return from_last < dims.size ? dims.data[dims.size - 1 - from_last] : 1;
}

TfLiteStatus CheckBroadcast(TfLiteContext* context, const AddTensors& tensors) {
  TF_LITE_ENSURE(context, tensors.output->dims->size <= kMaxDimensions);
  TF_LITE_ENSURE(context, tensors.input1->dims->size <= tensors.output->dims->size &&
                              tensors.input2->dims->size <= tensors.output->dims->size);
  for (int i = 0; i < tensors.output->dims->size; ++i) {
    const int size1 = DimensionFromLast(*tensors.input1->dims, i);
    const int size2 = DimensionFromLast(*tensors.input2->dims, i);
    TF_LITE_ENSURE(context, size1 == size2 || size1 == 1 || size2 == 1);
    TF_LITE_ENSURE_EQ(context, DimensionFromLast(*tensors.output->dims, i),
                      size1 == 1 ? size2 : size1);
  }
  return kTfLiteOk;
}

// Walks through an input in the output's order, staying in place along its dimensions of size 1.
class BroadcastCursor {
 public:
  BroadcastCursor(const TfLiteIntArray& input, const TfLiteIntArray& output) : output_(output) {
    int step = 1;
    for (int i = 0; i < output.size; ++i) {
      const int size = DimensionFromLast(input, i);
      steps_[i] = size == 1 ? 0 : step;
      step *= size;
      position_[i] = 0;
    }
  }

  int offset() const { return offset_; }

  void Next() {
    for (int i = 0; i < output_.size; ++i) {
      offset_ += steps_[i];
      const int size = DimensionFromLast(output_, i);
      if (++position_[i] < size) return;
      position_[i] = 0;
      offset_ -= steps_[i] * size;
    }
  }

 private:
  const TfLiteIntArray& output_;
  int steps_[kMaxDimensions];
  int position_[kMaxDimensions];
  int offset_ = 0;
};

template <typename T, typename AddFunction>
void AddElements(const AddTensors& tensors, AddFunction add) {
  const T* const input1 = micro::GetTensorData<T>(tensors.input1);
  const T* const input2 = micro::GetTensorData<T>(tensors.input2);
  T* const output = micro::GetTensorData<T>(tensors.output);
  const int count = static_cast<int>(NumElements(tensors.output->dims));
  if (micro::HaveSameShapes(tensors.input1, tensors.input2)) {
    for (int i = 0; i < count; ++i) output[i] = add(input1[i], input2[i]);
    return;
  }
  BroadcastCursor cursor1(*tensors.input1->dims, *tensors.output->dims);
  BroadcastCursor cursor2(*tensors.input2->dims, *tensors.output->dims);
  for (int i = 0; i < count; ++i) {
    output[i] = add(input1[cursor1.offset()], input2[cursor2.offset()]);
    cursor1.Next();
    cursor2.Next();
  }
}

TfLiteStatus InvokeInt8(TfLiteContext* context, TfLiteNode* node) {
  const auto& data = *static_cast<const AddData*>(node->user_data);
  AddElements<int8_t>(GetAddTensors(context, node), [&data](int8_t a, int8_t b) {
    const int32_t sum = Rescale((a + data.offset1) * (1 << kLeftShift), data.factor1) +
                        Rescale((b + data.offset2) * (1 << kLeftShift), data.factor2);
    const int32_t value = Rescale(sum, data.output_factor) + data.output_offset;
    return static_cast<int8_t>(Clamp<int32_t>(value, data.activation_min, data.activation_max));
  });
  return kTfLiteOk;
}

TfLiteStatus InvokeFloat(TfLiteContext* context, TfLiteNode* node) {
  const auto& params = *static_cast<const TfLiteAddParams*>(node->builtin_data);
  float activation_min;
  float activation_max;
  CalculateActivationRange(params.activation, &activation_min, &activation_max);
  AddElements<float>(GetAddTensors(context, node), [=](float a, float b) {
    return Clamp(a + b, activation_min, activation_max);
  });
  return kTfLiteOk;
}

TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  const bool is_int8 = GetAddTensors(context, node).output->type == kTfLiteInt8;
  return is_int8 ? InvokeInt8(context, node) : InvokeFloat(context, node);
}

void* Init(TfLiteContext* context, const char* /*buffer*/, size_t /*length*/) {
  return context->AllocatePersistentBuffer(context, sizeof(AddData));
}

TfLiteStatus PrepareQuantization(TfLiteContext* context, TfLiteFusedActivation activation,
                                 const TfLiteTensor* input1, const TfLiteTensor* input2,
                                 TfLiteTensor* output, AddData* data) {
  const float scale1 = input1->params.scale;
  const float scale2 = input2->params.scale;
  const float greater = scale1 > scale2 ? scale1 : scale2;
  TF_LITE_ENSURE(context, scale1 > 0.0f && scale2 > 0.0f && output->params.scale > 0.0f);
  data->factor1 = ScaleFactorOf(scale1, kHalf, greater);
  data->factor2 = ScaleFactorOf(scale2, kHalf, greater);
  data->output_factor = ScaleFactorOf(greater, kTwiceOverLeftShift, output->params.scale);
  TF_LITE_ENSURE(context, data->output_factor.shift <= 0);
  data->offset1 = static_cast<int16_t>(-input1->params.zero_point);
  data->offset2 = static_cast<int16_t>(-input2->params.zero_point);
  data->output_offset = static_cast<int16_t>(output->params.zero_point);
  int32_t activation_min = 0;
  int32_t activation_max = 0;
  TF_LITE_ENSURE_STATUS(CalculateActivationRangeQuantized(context, activation, output,
                                                          &activation_min, &activation_max));
  data->activation_min = static_cast<int16_t>(activation_min);
  data->activation_max = static_cast<int16_t>(activation_max);
  return kTfLiteOk;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_EQ(context, NumInputs(node), 2);
  TF_LITE_ENSURE_EQ(context, NumOutputs(node), 1);
  TF_LITE_ENSURE(context, node->builtin_data != nullptr && node->user_data != nullptr);
  const auto& params = *static_cast<const TfLiteAddParams*>(node->builtin_data);
  MicroContext* micro_context = GetMicroContext(context);
  TfLiteTensor* input1 = micro_context->AllocateTempInputTensor(node, kInput1);
  TfLiteTensor* input2 = micro_context->AllocateTempInputTensor(node, kInput2);
  TfLiteTensor* output = micro_context->AllocateTempOutputTensor(node, kOutput);
  TF_LITE_ENSURE(context, input1 != nullptr && input2 != nullptr && output != nullptr);
  TF_LITE_ENSURE(context, output->type == kTfLiteFloat32 || output->type == kTfLiteInt8);
  TF_LITE_ENSURE_TYPES_EQ(context, input1->type, output->type);
  TF_LITE_ENSURE_TYPES_EQ(context, input2->type, output->type);
  if (output->type == kTfLiteInt8) {
    TF_LITE_ENSURE_STATUS(PrepareQuantization(context, params.activation, input1, input2, output,
                                              static_cast<AddData*>(node->user_data)));
  }
  micro_context->DeallocateTempTfLiteTensor(output);
  micro_context->DeallocateTempTfLiteTensor(input2);
  micro_context->DeallocateTempTfLiteTensor(input1);
  return CheckBroadcast(context, GetAddTensors(context, node));
}

TfLiteStatus PrepareInt8(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_STATUS(EnsureInt8(context, GetAddTensors(context, node).output));
  return Prepare(context, node);
}

}  // namespace

TFLMRegistration Register_ADD() { return micro::RegisterOp(Init, Prepare, Invoke); }

TFLMRegistration Register_ADD_INT8() { return micro::RegisterOp(Init, PrepareInt8, InvokeInt8); }

}  // namespace tflite
