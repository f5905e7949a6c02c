#ifndef TESTS_HOST_RUNTIME_CUSTOM_OPS_H_
#define TESTS_HOST_RUNTIME_CUSTOM_OPS_H_

#include "tensorflow/lite/micro/micro_common.h"

// y = zero point - x + zero point, of int8 tensors of one shape. Uses temporary tensors, user data,
// a scratch buffer and the op's custom options (an optional byte that is added to y).
TFLMRegistration* Register_TEST_NEGATE();

// int32: the state (a variable tensor) += x; y = state. Knows whether it was reset.
TFLMRegistration* Register_TEST_ACCUMULATE();

#endif  // TESTS_HOST_RUNTIME_CUSTOM_OPS_H_
