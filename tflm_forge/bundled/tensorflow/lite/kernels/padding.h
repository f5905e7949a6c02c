#ifndef TENSORFLOW_LITE_KERNELS_PADDING_H_
#define TENSORFLOW_LITE_KERNELS_PADDING_H_

#include "tensorflow/lite/core/c/builtin_op_data.h"

namespace tflite {

// Output size of one dimension; 0 when an argument makes no sense (a stride of 0, ...).
int ComputeOutSize(TfLitePadding padding, int image_size, int filter_size, int stride,
                   int dilation_rate = 1);

// Padding before the image in one dimension; `offset` is 1 when one more is needed after it.
int ComputePaddingWithOffset(int stride, int dilation_rate, int in_size, int filter_size,
                             int out_size, int* offset);

inline int ComputePadding(int stride, int dilation_rate, int in_size, int filter_size,
                          int out_size) {
  int offset;
  return ComputePaddingWithOffset(stride, dilation_rate, in_size, filter_size, out_size, &offset);
}

TfLitePaddingValues ComputePaddingHeightWidth(int stride_height, int stride_width,
                                              int dilation_rate_height, int dilation_rate_width,
                                              int in_height, int in_width, int filter_height,
                                              int filter_width, TfLitePadding padding,
                                              int* out_height, int* out_width);

}  // namespace tflite

#endif  // TENSORFLOW_LITE_KERNELS_PADDING_H_
