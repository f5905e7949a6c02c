// Stands between interpreter and kernels: knows which op runs and how long each took, in every
// build profile (TFLM's own profiler hook is compiled out together with its error strings).
#pragma once

#include <cstdint>

#include "op_resolver.h"
#include "tensorflow/lite/c/common.h"

namespace forge {

// Puts the trace before Prepare and Invoke of all kOps, once; false when the resolver lacks one.
bool InstallOpTrace(OpResolver& resolver);

struct CurrentOpRecord {
  int op;             // number in kOps, from 1, of the op whose kernel runs; 0 when none does
  uint32_t position;  // operators of the main subgraph that are done
};

const CurrentOpRecord& CurrentOp();

// Runs g_device.interpreter once.
TfLiteStatus RunInference();

// From now on puts the ticks of each operator of the main subgraph into the answer, from number
// `first` on, counted from 1, as long as there is room. What another subgraph does counts for its
// caller.
void CollectOpTicks(uint32_t first);
constexpr uint32_t kCollectNothing = 0;

}  // namespace forge
