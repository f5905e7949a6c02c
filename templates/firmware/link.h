// The serial link: answers requests for ever. Frames and requests: docs/link.md.
//
// Inputs: the memory planner reuses the memory of inputs during an inference. The host writes every
// input before each INVOKE that is to give numbers; INVOKE with a count above 1 measures time only,
// on what the run before left.
//
// SOAK fills all inputs before every loop, the same in each; the host can make the same data:
//   state = seed, or 1 when the seed is 0
//   next(): state ^= state << 13; state ^= state >> 17; state ^= state << 5 (all in uint32)
//   for each input tensor in order:
//     FLOAT32: each element = (float)(int32_t)next() * 2^-31, rounded to nearest even
//     BOOL: each byte = next() & 1
//     else: each byte = next() & 0xFF
// FILL with mode 1 makes the data of its one tensor the same way, starting from its own seed. The
// state of the model is reset before each loop; INVOKE and PROFILE keep it.
// The CRC of a loop runs over the bytes of all output tensors, in order.
#pragma once

#include <cstdint>

#include "board.h"

namespace forge {

// Reads requests and answers them.
[[noreturn]] void ServeLink();

// Answers the request that a fault cut off, if there is one; ServeLink may go on afterwards.
void AnswerFault(const FaultRecord& fault);

// Long work: PROGRESS goes out when it starts and then about twice a second, between operators too,
// so that silence means trouble. The trace of the operators calls KeepAlive.
void StartProgress(uint32_t total);
void ReportProgress(uint32_t done);
void KeepAlive();

// The board's ticks without those that PROGRESS frames have cost.
uint64_t InferenceTicks();

}  // namespace forge
