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
// dilation. An error when the tensors are not images or the output has another size than it must have.
TfLiteStatus CompleteGeometry(TfLiteContext* context, const TfLiteEvalTensor* input,
                              const TfLiteEvalTensor* output, TfLitePadding padding,
                              WindowGeometry* geometry);

// Taps of a window along one axis that fall into the image: [begin, end).
struct TapRange {
  int begin;
  int end;
};

// The window of each output pixel in turn. Pixels are counted over all batches.
class WindowCursor {
 public:
  explicit WindowCursor(const WindowGeometry& geometry) : geometry_(geometry) {}

  // False after the last output pixel.
  bool Next();

  const WindowGeometry& geometry() const { return geometry_; }
  int output_pixel() const { return output_pixel_; }
  TapRange rows() const { return rows_; }
  TapRange columns() const { return columns_; }

  // Of a tap inside the image.
  int InputPixel(int row, int column) const {
    return origin_pixel_ + row * geometry_.dilation_height * geometry_.in_width +
           column * geometry_.dilation_width;
  }

  bool IsClipped() const {
    return TapCount() != geometry_.filter_height * geometry_.filter_width;
  }
  int TapCount() const {
    return (rows_.end - rows_.begin) * (columns_.end - columns_.begin);
  }

 private:
  const WindowGeometry& geometry_;
  int output_pixel_ = -1;
  int batch_ = 0;
  int y_ = 0;
  int x_ = -1;
  int origin_pixel_ = 0;
  TapRange rows_ = {0, 0};
  TapRange columns_ = {0, 0};
};

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_WINDOW_H_
