// Opens models and prints what the walk says, for tests with many damaged files in one process.
//
// Standard input: for each model u32 length, u32 offset from a 16-byte boundary, the bytes.
// Standard output: one line a model: status, op hash, and code:version:name of each op. The bytes
// lie at the end of their memory, so that AddressSanitizer sees any read behind them.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "model_walk.h"

namespace {

bool Read(void* to, size_t bytes) { return std::fread(to, 1, bytes, stdin) == bytes; }

void PrintName(const char* name) {
  for (; *name != 0; ++name) {
    const unsigned char letter = static_cast<unsigned char>(*name);
    std::printf(letter > 32 && letter < 127 ? "%c" : "%%%02X", letter);
  }
}

void PrintWalk(const uint8_t* data, uint32_t length) {
  forge::ModelWalk walk;
  const forge::Status status = walk.Open(data, length);
  std::printf("%u %" PRIu32, static_cast<unsigned>(status), walk.op_hash());
  if (status == forge::Status::kOk) {
    for (forge::OpUse op = forge::kBeforeFirstOp; walk.Next(&op);) {
      std::printf(" %" PRId32 ":%" PRIu32 ":", op.builtin_code, op.version);
      PrintName(op.custom_name);
    }
  }
  std::printf("\n");
}

}  // namespace

int main() {
  uint32_t head[2];
  while (Read(head, sizeof(head))) {
    const uint32_t length = head[0];
    const uint32_t offset = head[1];
    void* memory = nullptr;
    if (posix_memalign(&memory, 16, length + offset == 0 ? 1 : length + offset) != 0) return 2;
    uint8_t* data = static_cast<uint8_t*>(memory) + offset;
    if (!Read(data, length)) return 2;
    PrintWalk(data, length);
    std::free(memory);
  }
  return 0;
}
