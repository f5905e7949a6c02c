#include "tensorflow/lite/micro/kernels/conv.h"

#include <cstring>

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/type_check.h"
#include "tensorflow/lite/micro/kernels/weighted_op.h"
#include "tensorflow/lite/micro/kernels/window.h"

namespace tflite {
namespace {

// The filter lies as [output channel][row][column][input channel of the group].
constexpr int kChannelDimension = 0;

// A filter of fewer input channels than the image has is one of several groups.
struct Groups {
  int count;
  int in_depth;
  int out_depth;
};

TfLiteStatus DescribeConv(TfLiteContext* context, const TfLiteConvParams& params,
                          const WeightedOpTensors& tensors, WindowGeometry* geometry,
                          Groups* groups) {
  const TfLiteIntArray& filter = *tensors.filter->dims;
  TF_LITE_ENSURE_EQ(context, filter.size, 4);
  geometry->filter_height = filter.data[1];
  geometry->filter_width = filter.data[2];
  geometry->stride_height = params.stride_height;
  geometry->stride_width = params.stride_width;
  geometry->dilation_height = params.dilation_height_factor;
  geometry->dilation_width = params.dilation_width_factor;
  TF_LITE_ENSURE_STATUS(
      CompleteGeometry(context, tensors.input, tensors.output, params.padding, geometry));
  TF_LITE_ENSURE_EQ(context, geometry->out_depth, filter.data[kChannelDimension]);
  TF_LITE_ENSURE(context, filter.data[3] > 0 && geometry->in_depth >= filter.data[3]);
  groups->in_depth = filter.data[3];
  groups->count = geometry->in_depth / groups->in_depth;
  groups->out_depth = geometry->out_depth / groups->count;
  TF_LITE_ENSURE_EQ(context, groups->count * groups->in_depth, geometry->in_depth);
  TF_LITE_ENSURE_EQ(context, groups->count * groups->out_depth, geometry->out_depth);
  return kTfLiteOk;
}

// Whether the pixels under a window are, in the image itself, one vector in the filter's order.
bool NeedsNoPatch(const WindowGeometry& geometry, const Groups& groups) {
  return geometry.filter_height == 1 && geometry.filter_width == 1 && groups.count == 1;
}

// Copies the pixels under the window, in the filter's order; `padding` stands for those outside.
void CopyPatch(const WindowGeometry& geometry, const WindowCursor& window, const int8_t* input,
               int group_depth, int8_t padding, int8_t* patch) {
  if (window.is_clipped()) {
    std::memset(patch, padding, geometry.filter_height * geometry.filter_width * group_depth);
  }
  const bool is_run = geometry.dilation_width == 1 && group_depth == geometry.in_depth;
  const int runs = is_run ? 1 : window.columns();
  const int run_length = is_run ? window.columns() * group_depth : group_depth;
  for (int row = 0; row < window.rows(); ++row) {
    const int8_t* source = input + window.InputPixel(row) * geometry.in_depth;
    int8_t* target = patch + window.FilterTap(row) * group_depth;
    for (int run = 0; run < runs; ++run) {
      std::memcpy(target, source, run_length);
      source += geometry.dilation_width * geometry.in_depth;
      target += run_length;
    }
  }
}

TfLiteStatus InvokeInt8(TfLiteContext* context, TfLiteNode* node) {
  const auto& params = *static_cast<const TfLiteConvParams*>(node->builtin_data);
  const auto& data = *static_cast<const WeightedOpData*>(node->user_data);
  const WeightedOpTensors tensors = GetWeightedOpTensors(context, node);
  WindowGeometry geometry;
  Groups groups;
  TF_LITE_ENSURE_STATUS(DescribeConv(context, params, tensors, &geometry, &groups));
  ScaleFactor single;
  OutputStage stage;
  int8_t* const patch = PrepareOutputStage(context, data, tensors.bias, &single, &stage);
  const bool needs_patch = !NeedsNoPatch(geometry, groups);
  const int depth = geometry.filter_height * geometry.filter_width * groups.in_depth;
  const int8_t* const image = micro::GetTensorData<int8_t>(tensors.input);
  const int8_t* const filter = micro::GetTensorData<int8_t>(tensors.filter);
  int8_t* output = micro::GetTensorData<int8_t>(tensors.output);

  WindowCursor window(geometry);
  while (window.Next()) {
    for (int group = 0; group < groups.count; ++group) {
      const int8_t* input = image + group * groups.in_depth;
      if (needs_patch) {
        CopyPatch(geometry, window, input, groups.in_depth, static_cast<int8_t>(-data.input_offset),
                  patch);
        input = patch;
      } else {
        input += window.InputPixel(0) * geometry.in_depth;
      }
      MultiplyRows(stage, input, data.input_offset, filter, depth, group * groups.out_depth,
                   groups.out_depth, output);
      output += groups.out_depth;
    }
  }
  return kTfLiteOk;
}

float DotUnderWindow(const WindowGeometry& geometry, const WindowCursor& window, const float* input,
                     int group_depth, const float* filter) {
  float sum = 0.0f;
  for (int row = 0; row < window.rows(); ++row) {
    const float* pixel = input + window.InputPixel(row) * geometry.in_depth;
    const float* weight = filter + window.FilterTap(row) * group_depth;
    for (int column = 0; column < window.columns(); ++column) {
      for (int i = 0; i < group_depth; ++i) sum += pixel[i] * *weight++;
      pixel += geometry.dilation_width * geometry.in_depth;
    }
  }
  return sum;
}

TfLiteStatus InvokeFloat(TfLiteContext* context, TfLiteNode* node) {
  const auto& params = *static_cast<const TfLiteConvParams*>(node->builtin_data);
  const WeightedOpTensors tensors = GetWeightedOpTensors(context, node);
  WindowGeometry geometry;
  Groups groups;
  TF_LITE_ENSURE_STATUS(DescribeConv(context, params, tensors, &geometry, &groups));
  float activation_min;
  float activation_max;
  CalculateActivationRange(params.activation, &activation_min, &activation_max);
  const int depth = geometry.filter_height * geometry.filter_width * groups.in_depth;
  const float* const input = micro::GetTensorData<float>(tensors.input);
  const float* const filter = micro::GetTensorData<float>(tensors.filter);
  const float* const bias = micro::GetOptionalTensorData<float>(tensors.bias);
  float* output = micro::GetTensorData<float>(tensors.output);

  WindowCursor window(geometry);
  while (window.Next()) {
    for (int channel = 0; channel < geometry.out_depth; ++channel) {
      const float* group_input = input + channel / groups.out_depth * groups.in_depth;
      float sum =
          DotUnderWindow(geometry, window, group_input, groups.in_depth, filter + channel * depth);
      if (bias != nullptr) sum += bias[channel];
      *output++ = Clamp(sum, activation_min, activation_max);
    }
  }
  return kTfLiteOk;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE(context, node->builtin_data != nullptr);
  const auto& params = *static_cast<const TfLiteConvParams*>(node->builtin_data);
  TF_LITE_ENSURE_STATUS(PrepareWeightedOp(context, node, params.activation, kChannelDimension));
  const WeightedOpTensors tensors = GetWeightedOpTensors(context, node);
  WindowGeometry geometry;
  Groups groups;
  TF_LITE_ENSURE_STATUS(DescribeConv(context, params, tensors, &geometry, &groups));
  if (tensors.input->type != kTfLiteInt8) return kTfLiteOk;
  const int patch_bytes = NeedsNoPatch(geometry, groups)
                              ? 0
                              : geometry.filter_height * geometry.filter_width * groups.in_depth;
  return RequestWeightedOpScratch(context, node, patch_bytes);
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

TFLMRegistration Register_CONV_2D() { return micro::RegisterOp(InitWeightedOp, Prepare, Invoke); }

TFLMRegistration Register_CONV_2D_INT8() {
  return micro::RegisterOp(InitWeightedOp, PrepareInt8, InvokeInt8);
}

}  // namespace tflite
