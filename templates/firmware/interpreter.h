// The one interpreter, and the state that a model keeps from one inference to the next.
#pragma once

#include "op_resolver.h"
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/micro_interpreter.h"

namespace forge {

// Makes the interpreter of the model in flash; null when the arena has no room even for that.
tflite::MicroInterpreter* MakeInterpreter(const OpResolver& resolver);

// Puts g_device.interpreter's state back to what it was before the first inference: variable
// tensors, resource variables, and what kernels remember. Compiled in only when the model has any.
TfLiteStatus ResetState();

}  // namespace forge
