#ifndef TENSORFLOW_LITE_KERNELS_INTERNAL_RUNTIME_SHAPE_H_
#define TENSORFLOW_LITE_KERNELS_INTERNAL_RUNTIME_SHAPE_H_

#include <cstdint>

#include "tensorflow/lite/kernels/internal/compatibility.h"

namespace tflite {

// A shape of at most kMaxSmallSize dimensions, held by value.
class RuntimeShape {
 public:
  static constexpr int kMaxSmallSize = 6;

  RuntimeShape() = default;
  explicit RuntimeShape(int dimensions_count) : size_(Limited(dimensions_count)) {}
  RuntimeShape(int dimensions_count, int32_t value) : size_(Limited(dimensions_count)) {
    for (int i = 0; i < size_; ++i) dims_[i] = value;
  }
  RuntimeShape(int dimensions_count, const int32_t* dims_data) {
    ReplaceWith(dimensions_count, dims_data);
  }
  RuntimeShape(const RuntimeShape&) = default;
  RuntimeShape& operator=(const RuntimeShape&) = delete;

  bool operator==(const RuntimeShape& other) const {
    if (size_ != other.size_) return false;
    for (int i = 0; i < size_; ++i) {
      if (dims_[i] != other.dims_[i]) return false;
    }
    return true;
  }

  // `shape` with ones before it.
  static RuntimeShape ExtendedShape(int new_shape_size, const RuntimeShape& shape) {
    RuntimeShape extended(new_shape_size, 1);
    const int added = extended.size_ - shape.size_;
    TFLITE_DCHECK_GE(added, 0);
    for (int i = 0; i < shape.size_; ++i) extended.dims_[added + i] = shape.dims_[i];
    return extended;
  }

  int32_t DimensionsCount() const { return size_; }
  int32_t Dims(int i) const {
    TFLITE_DCHECK(i >= 0 && i < size_);
    return dims_[i];
  }
  void SetDim(int i, int32_t value) {
    TFLITE_DCHECK(i >= 0 && i < size_);
    dims_[i] = value;
  }
  int32_t* DimsData() { return dims_; }
  const int32_t* DimsData() const { return dims_; }

  void ReplaceWith(int dimensions_count, const int32_t* dims_data) {
    size_ = Limited(dimensions_count);
    for (int i = 0; i < size_; ++i) dims_[i] = dims_data[i];
  }

  int FlatSize() const {
    int count = 1;
    for (int i = 0; i < size_; ++i) count *= dims_[i];
    return count;
  }

 private:
  static int32_t Limited(int count) {
    TFLITE_DCHECK(count >= 0 && count <= kMaxSmallSize);
    return count < kMaxSmallSize ? count : kMaxSmallSize;
  }

  int32_t size_ = 0;
  int32_t dims_[kMaxSmallSize];
};

inline int Offset(const RuntimeShape& shape, int i0, int i1, int i2, int i3) {
  const int32_t* dims = shape.DimsData();
  return ((i0 * dims[1] + i1) * dims[2] + i2) * dims[3] + i3;
}

}  // namespace tflite

#endif  // TENSORFLOW_LITE_KERNELS_INTERNAL_RUNTIME_SHAPE_H_
