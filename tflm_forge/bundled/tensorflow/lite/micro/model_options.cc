#include <cstddef>
#include <cstring>

#include "tensorflow/lite/c/builtin_op_data.h"
#include "tensorflow/lite/micro/model_reader.h"

namespace tflite {
namespace {

// BuiltinOptions of the schema.
enum OptionsType : uint8_t {
  kConv2D = 1,
  kDepthwiseConv2D = 2,
  kPool2D = 5,
  kFullyConnected = 8,
  kSoftmax = 9,
  kAdd = 11,
};

using Option = OptionField;

template <uint8_t N>
constexpr OptionsLayout Layout(uint8_t type, const Option (&fields)[N]) {
  return {type, N, fields};
}

constexpr Option kConv2DFields[] = {
    {0, offsetof(TfLiteConvParams, padding), Option::kPadding, 0},
    {1, offsetof(TfLiteConvParams, stride_width), Option::kWord, 0},
    {2, offsetof(TfLiteConvParams, stride_height), Option::kWord, 0},
    {3, offsetof(TfLiteConvParams, activation), Option::kActivation, 0},
    {4, offsetof(TfLiteConvParams, dilation_width_factor), Option::kWord, 1},
    {5, offsetof(TfLiteConvParams, dilation_height_factor), Option::kWord, 1},
    {6, offsetof(TfLiteConvParams, quantized_bias_type), Option::kType, 0},
};

constexpr Option kDepthwiseConv2DFields[] = {
    {0, offsetof(TfLiteDepthwiseConvParams, padding), Option::kPadding, 0},
    {1, offsetof(TfLiteDepthwiseConvParams, stride_width), Option::kWord, 0},
    {2, offsetof(TfLiteDepthwiseConvParams, stride_height), Option::kWord, 0},
    {3, offsetof(TfLiteDepthwiseConvParams, depth_multiplier), Option::kWord, 0},
    {4, offsetof(TfLiteDepthwiseConvParams, activation), Option::kActivation, 0},
    {5, offsetof(TfLiteDepthwiseConvParams, dilation_width_factor), Option::kWord, 1},
    {6, offsetof(TfLiteDepthwiseConvParams, dilation_height_factor), Option::kWord, 1},
};

constexpr Option kPool2DFields[] = {
    {0, offsetof(TfLitePoolParams, padding), Option::kPadding, 0},
    {1, offsetof(TfLitePoolParams, stride_width), Option::kWord, 0},
    {2, offsetof(TfLitePoolParams, stride_height), Option::kWord, 0},
    {3, offsetof(TfLitePoolParams, filter_width), Option::kWord, 0},
    {4, offsetof(TfLitePoolParams, filter_height), Option::kWord, 0},
    {5, offsetof(TfLitePoolParams, activation), Option::kActivation, 0},
};

constexpr Option kFullyConnectedFields[] = {
    {0, offsetof(TfLiteFullyConnectedParams, activation), Option::kActivation, 0},
    {1, offsetof(TfLiteFullyConnectedParams, weights_format), Option::kWeightsFormat, 0},
    {2, offsetof(TfLiteFullyConnectedParams, keep_num_dims), Option::kBool, 0},
    {3, offsetof(TfLiteFullyConnectedParams, asymmetric_quantize_inputs), Option::kBool, 0},
    {4, offsetof(TfLiteFullyConnectedParams, quantized_bias_type), Option::kType, 0},
};

constexpr Option kSoftmaxFields[] = {
    {0, offsetof(TfLiteSoftmaxParams, beta), Option::kWord, 0},
};

constexpr Option kAddFields[] = {
    {0, offsetof(TfLiteAddParams, activation), Option::kActivation, 0},
    {1, offsetof(TfLiteAddParams, pot_scale_int16), Option::kBool, 1},
};

static_assert(sizeof(TfLiteConvParams) <= kMaxParamsBytes);
static_assert(sizeof(TfLiteDepthwiseConvParams) <= kMaxParamsBytes);
static_assert(sizeof(TfLitePoolParams) <= kMaxParamsBytes);
static_assert(sizeof(TfLiteFullyConnectedParams) <= kMaxParamsBytes);

// The highest value of each kind that is stored as a byte.
constexpr uint8_t kHighest[] = {0, 1, 1, 5, 1, 20};

}  // namespace

constexpr OptionsLayout kConv2DOptions = Layout(kConv2D, kConv2DFields);
constexpr OptionsLayout kDepthwiseConv2DOptions = Layout(kDepthwiseConv2D, kDepthwiseConv2DFields);
constexpr OptionsLayout kPool2DOptions = Layout(kPool2D, kPool2DFields);
constexpr OptionsLayout kFullyConnectedOptions = Layout(kFullyConnected, kFullyConnectedFields);
constexpr OptionsLayout kSoftmaxOptions = Layout(kSoftmax, kSoftmaxFields);
constexpr OptionsLayout kAddOptions = Layout(kAdd, kAddFields);

void ReadOptions(ModelReader& model, ModelPos op, const OptionsLayout& layout,
                 uint8_t (&params)[kMaxParamsBytes]) {
  // The highest value of each kind that is stored as a byte.
  static constexpr uint8_t kHighest[] = {0, 1, 1, 5, 1, 255};
  memset(params, 0, sizeof(params));
  const ModelPos options = model.TableField(op, field::kOperatorOptions);
  if (options != 0 && model.ByteField(op, field::kOperatorOptionsType) != layout.options_type) {
    model.MarkDamaged(op);
    return;
  }
  for (int i = 0; i < layout.field_count; ++i) {
    const OptionField& option = layout.fields[i];
    const uint32_t bytes = option.kind == OptionField::kWord ? 4 : 1;
    const ModelPos pos = model.Field(options, option.id, bytes);
    int32_t value = option.default_value;
    size_t value_bytes = sizeof(TfLitePadding);
    if (pos != 0) {
      value = bytes == 4 ? *model.At<const int32_t>(pos) : *model.At<const uint8_t>(pos);
      if (bytes == 1 && value > kHighest[option.kind]) model.MarkDamaged(pos);
    }
    if (option.kind == OptionField::kWord) value_bytes = 4;
    if (option.kind == OptionField::kBool) value_bytes = 1;
    if (option.kind == OptionField::kPadding) value += kTfLitePaddingSame;
    if (option.kind == OptionField::kType) value = TypeOfModel(value);
    memcpy(params + option.offset, &value, value_bytes);
  }
}

}  // namespace tflite
