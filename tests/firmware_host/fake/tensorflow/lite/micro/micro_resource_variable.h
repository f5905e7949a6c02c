#pragma once

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/micro_allocator.h"

namespace tflite {

// As much as the firmware uses of it: a variable that counts the inferences since the last reset.
class MicroResourceVariables {
 public:
  static MicroResourceVariables* Create(MicroAllocator* allocator, int count);
  TfLiteStatus ResetAll();

  int count = 0;
  int value = 0;
};

}  // namespace tflite
