// The checks of the boot that need no inference: registration, and the model's op set against this
// firmware's.
#pragma once

#include <cstdint>

#include "forge_status.h"
#include "model_walk.h"
#include "op_resolver.h"

namespace forge {

// An op of the model that this firmware can not run.
struct Offender {
  OpUse op;                        // with the version that the model needs
  uint32_t supported_version = 0;  // 0: the op is not registered
};

// Registers every op; kRegisterFailed or kRegisterCount when the resolver does not hold exactly
// kOps afterwards.
Status CheckRegistration(OpResolver& resolver);

// Compares the model's op set with kOps, kOpHash and what the resolver finds.
Status CheckOps(const ModelWalk& model, const OpResolver& resolver);

// Moves on to the next op that this firmware can not run; false when there is none. Start with a
// default Offender.
bool NextOffender(const ModelWalk& model, const OpResolver& resolver, Offender* offender);

// Name of a builtin op that this firmware knows, else null.
const char* NameOfOp(const OpUse& op);

}  // namespace forge
