#include "tensorflow/lite/micro/kernels/window.h"

#include <cstdint>

#include "tensorflow/lite/kernels/padding.h"

namespace tflite {
namespace {

// Taps along one axis that fall into the image: [begin, end).
struct TapRange {
  int begin;
  int end;
};

// `origin` is the coordinate of the first tap, negative in the padding.
TapRange ClipTaps(int origin, int size, int taps, int dilation) {
  TapRange range = {0, taps};
  if (origin < 0) range.begin = (-origin + dilation - 1) / dilation;
  const int room = size - origin;
  if (room <= (taps - 1) * dilation) range.end = room <= 0 ? 0 : (room + dilation - 1) / dilation;
  if (range.begin > range.end) range.begin = range.end;
  return range;
}

}  // namespace

TfLiteStatus CompleteGeometry(TfLiteContext* context, const TfLiteEvalTensor* input,
                              const TfLiteEvalTensor* output, TfLitePadding padding,
                              WindowGeometry* geometry) {
  TF_LITE_ENSURE_EQ(context, input->dims->size, 4);
  TF_LITE_ENSURE_EQ(context, output->dims->size, 4);
  WindowGeometry& g = *geometry;
  TF_LITE_ENSURE(context, g.filter_height <= INT16_MAX && g.filter_width <= INT16_MAX);
  TF_LITE_ENSURE(context, g.dilation_height <= INT16_MAX && g.dilation_width <= INT16_MAX);
  g.batches = input->dims->data[0];
  g.in_height = input->dims->data[1];
  g.in_width = input->dims->data[2];
  g.in_depth = input->dims->data[3];
  const TfLitePaddingValues pad = ComputePaddingHeightWidth(
      g.stride_height, g.stride_width, g.dilation_height, g.dilation_width, g.in_height, g.in_width,
      g.filter_height, g.filter_width, padding, &g.out_height, &g.out_width);
  g.pad_height = pad.height;
  g.pad_width = pad.width;
  g.out_depth = output->dims->data[3];
  TF_LITE_ENSURE(context, g.out_height > 0 && g.out_width > 0);
  TF_LITE_ENSURE_EQ(context, output->dims->data[0], g.batches);
  TF_LITE_ENSURE_EQ(context, output->dims->data[1], g.out_height);
  TF_LITE_ENSURE_EQ(context, output->dims->data[2], g.out_width);
  return kTfLiteOk;
}

bool WindowCursor::Next() {
  const WindowGeometry& g = geometry_;
  ++output_pixel_;
  if (++x_ == g.out_width) {
    x_ = 0;
    if (++y_ == g.out_height) {
      y_ = 0;
      ++batch_;
    }
  }
  if (batch_ == g.batches) return false;
  const int top = y_ * g.stride_height - g.pad_height;
  const int left = x_ * g.stride_width - g.pad_width;
  const TapRange rows = ClipTaps(top, g.in_height, g.filter_height, g.dilation_height);
  const TapRange columns = ClipTaps(left, g.in_width, g.filter_width, g.dilation_width);
  rows_ = rows.end - rows.begin;
  columns_ = columns.end - columns.begin;
  first_tap_ = rows.begin * g.filter_width + columns.begin;
  first_pixel_ = (batch_ * g.in_height + top + rows.begin * g.dilation_height) * g.in_width + left +
                 columns.begin * g.dilation_width;
  return true;
}

}  // namespace tflite
