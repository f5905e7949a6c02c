// What the generator would write for the fake firmware. The tests give the hash, which depends on
// the model they make, and whether the firmware keeps all tensors and its model has state.
#pragma once

#include <cstdint>

namespace forge {

inline constexpr char kForgeVersion[] = "9.8.7";
inline constexpr char kBoardName[] = "fake-board";
inline constexpr char kRuntimeName[] = "fake-runtime";
inline constexpr char kRuntimeVersion[] = "1.2.3";
inline constexpr char kKernelSet[] = "none";
inline constexpr uint8_t kBuildId[16] = {0xB0, 0xB1, 0xB2, 0xB3};
inline constexpr uint8_t kModelSha256[32] = {0x50, 0x51, 0x52};
inline constexpr uint32_t kModelCount = 1;
inline constexpr uint16_t kLinkMtu = FAKE_MTU;
inline constexpr bool kKeepTensors = FAKE_EXTRAS != 0;
inline constexpr bool kMeasuresArena = FAKE_EXTRAS != 0;
inline constexpr bool kHasState = FAKE_EXTRAS != 0;
inline constexpr uint32_t kOpHash = FAKE_OP_HASH;
inline constexpr int kOpCount = 3;

struct OpEntry {
  int32_t builtin_code;
  uint32_t max_version;
  const char* custom_name;
  const char* name;
};

inline constexpr OpEntry kOps[kOpCount] = {
    {9, 4, "", "FULLY_CONNECTED"},
    {25, 2, "", "SOFTMAX"},
    {32, 1, "Fake", "Fake"},
};

}  // namespace forge
