// Sliding windows over images: sizes, padding, and which taps of a window fall into the image.

#ifndef TENSORFLOW_LITE_MICRO_KERNELS_WINDOW_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_WINDOW_H_

#include "tensorflow/lite/c/builtin_op_data.h"
#include "tensorflow/lite/c/common.h"

namespace tflite {

struct WindowGeometry {
  int batches;
  int in_height;
  int in_width;
  int in_depth;
  int out_height;
  int out_width;
  int out_depth;
  int filter_height;
  int filter_width;
  int stride_height;
  int stride_width;
  int dilation_height;
  int dilation_width;
  int pad_height;
  int pad_width;
};

// Fills in the sizes of `input` and `output` and the padding; the caller has set filter, stride and
// dilation. An error when the tensors are not images or the output has another size than it must
// have.
TfLiteStatus CompleteGeometry(TfLiteContext* context, const TfLiteEvalTensor* input,
                              const TfLiteEvalTensor* output, TfLitePadding padding,
                              WindowGeometry* geometry);

// The window of each output pixel in turn, as the block of its taps that fall into the image.
// Pixels are counted over all batches, taps over the rows of the filter.
class WindowCursor {
 public:
  explicit WindowCursor(const WindowGeometry& geometry) : geometry_(geometry) {}

  // False after the last output pixel.
  bool Next();

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int tap_count() const { return rows_ * columns_; }
  bool is_clipped() const {
    return tap_count() != geometry_.filter_height * geometry_.filter_width;
  }
  int output_pixel() const { return output_pixel_; }
  // The pixel and the tap in the first column of one of rows().
  int InputPixel(int row) const {
    return first_pixel_ + row * geometry_.dilation_height * geometry_.in_width;
  }
  int FilterTap(int row) const { return first_tap_ + row * geometry_.filter_width; }

 private:
  const WindowGeometry& geometry_;
  int output_pixel_ = -1;
  int batch_ = 0;
  int y_ = 0;
  int x_ = -1;
  int rows_ = 0;
  int columns_ = 0;
  int first_pixel_ = 0;
  int first_tap_ = 0;
};

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_WINDOW_H_
