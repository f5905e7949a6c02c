#include "tensorflow/lite/kernels/padding.h"

#include <cstdint>

namespace tflite {
namespace {

// Far above any real image, filter, stride or dilation; sums and the product below fit an int.
constexpr int kMaxExtent = 0x7FFF;

bool IsExtent(int value) { return value > 0 && value <= kMaxExtent; }

bool AreExtents(int image_size, int filter_size, int stride, int dilation_rate) {
  return image_size >= 0 && image_size <= kMaxExtent * kMaxExtent && IsExtent(filter_size) &&
         IsExtent(stride) && IsExtent(dilation_rate);
}

int DilatedSize(int filter_size, int dilation_rate) {
  return (filter_size - 1) * dilation_rate + 1;
}

}  // namespace

int ComputeOutSize(TfLitePadding padding, int image_size, int filter_size, int stride,
                   int dilation_rate) {
  if (!AreExtents(image_size, filter_size, stride, dilation_rate)) return 0;
  int covered = 0;
  if (padding == kTfLitePaddingSame) {
    covered = image_size + stride - 1;
  } else if (padding == kTfLitePaddingValid) {
    covered = image_size + stride - DilatedSize(filter_size, dilation_rate);
  }
  return covered <= 0 ? 0 : static_cast<int>(static_cast<unsigned>(covered) / stride);
}

int ComputePaddingWithOffset(int stride, int dilation_rate, int in_size, int filter_size,
                             int out_size, int* offset) {
  *offset = 0;
  if (!AreExtents(in_size, filter_size, stride, dilation_rate) || !IsExtent(out_size)) return 0;
  const int covered = (out_size - 1) * stride + DilatedSize(filter_size, dilation_rate);
  const int total = covered > in_size ? covered - in_size : 0;
  *offset = total & 1;
  return total >> 1;
}

TfLitePaddingValues ComputePaddingHeightWidth(int stride_height, int stride_width,
                                              int dilation_rate_height, int dilation_rate_width,
                                              int in_height, int in_width, int filter_height,
                                              int filter_width, TfLitePadding padding,
                                              int* out_height, int* out_width) {
  *out_width = ComputeOutSize(padding, in_width, filter_width, stride_width, dilation_rate_width);
  *out_height =
      ComputeOutSize(padding, in_height, filter_height, stride_height, dilation_rate_height);
  TfLitePaddingValues values;
  values.height = ComputePaddingWithOffset(stride_height, dilation_rate_height, in_height,
                                           filter_height, *out_height, &values.height_offset);
  values.width = ComputePaddingWithOffset(stride_width, dilation_rate_width, in_width, filter_width,
                                          *out_width, &values.width_offset);
  return values;
}

}  // namespace tflite
