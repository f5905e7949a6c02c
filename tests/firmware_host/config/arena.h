#pragma once

#include <cstdint>

namespace forge {

extern uint8_t g_tensor_arena[];
uint32_t ArenaBytes();
void SetNextArenaBytes(uint32_t bytes);

}  // namespace forge
