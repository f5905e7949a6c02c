#ifndef TENSORFLOW_LITE_MICRO_KERNELS_POOLING_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_POOLING_H_

#include "tensorflow/lite/micro/kernels/micro_ops.h"

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_POOLING_H_
