// Stands between interpreter and kernels: knows which op runs and how long each took, in every
// build profile (TFLM's own profiler hook is compiled out together with its error strings).
#pragma once

#include <cstdint>

#include "message.h"
#include "op_resolver.h"
#include "tensorflow/lite/micro/compatibility.h"
#include "tensorflow/lite/micro/micro_op_resolver.h"

namespace forge {

// Gives out the registrations of another resolver with Prepare and Invoke going through the trace.
class TracedResolver : public tflite::MicroOpResolver {
 public:
  // Takes over all kOps, which the resolver must hold. There is one trace, so there is one
  // TracedResolver.
  explicit TracedResolver(const tflite::MicroOpResolver& resolver);

  const TFLMRegistration* FindOp(tflite::BuiltinOperator op) const override;
  const TFLMRegistration* FindOp(const char* op) const override;
  tflite::TfLiteBridgeBuiltinParseFunction GetOpDataParser(
      tflite::BuiltinOperator op) const override;

 private:
  TF_LITE_REMOVE_VIRTUAL_DELETE

  const TFLMRegistration* Traced(const TFLMRegistration* original) const;

  const tflite::MicroOpResolver& resolver_;
  TFLMRegistration registrations_[kOpCount];
};

struct CurrentOpRecord {
  int op;             // index into kOps of the op whose kernel runs, -1 when none does
  uint32_t position;  // operators of the main subgraph that are done
};

const CurrentOpRecord& CurrentOp();

// Runs g_device.interpreter once.
TfLiteStatus RunInference();

// From now on appends the ticks of each operator of the main subgraph, from number `from` on, as
// long as there is room; null ends it. What other subgraphs do counts for the operator that calls
// them.
void CollectOpTicks(BodyWriter* out, uint32_t from);

}  // namespace forge
