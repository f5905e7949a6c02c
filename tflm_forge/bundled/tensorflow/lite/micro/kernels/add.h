#ifndef TENSORFLOW_LITE_MICRO_KERNELS_ADD_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_ADD_H_

#include "tensorflow/lite/micro/kernels/micro_ops.h"

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_ADD_H_
