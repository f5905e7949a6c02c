// The model's op set against what this firmware has registered.
#pragma once

#include <cstdint>

#include "model_walk.h"
#include "op_resolver.h"

namespace forge {

// An op of the model that this firmware can not run.
struct Offender {
  OpUse op = kBeforeFirstOp;       // with the version that the model needs
  uint32_t supported_version = 0;  // 0: the op is not registered
};

// The resolver's registration of an op, or null. A builtin op has an empty custom name.
const TFLMRegistration* FindRegistration(const tflite::MicroOpResolver& resolver,
                                         int32_t builtin_code, const char* custom_name);

// Moves on to the next op that this firmware can not run, from a default Offender to the first;
// false when there is none.
bool NextOffender(const ModelWalk& model, const OpResolver& resolver, Offender* offender);

// Name of a builtin op that this firmware knows, else null.
const char* NameOfOp(const OpUse& op);

}  // namespace forge
