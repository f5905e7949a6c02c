#include "message.h"

namespace forge {
namespace {

constexpr uint32_t kListHeadBytes = 3;

// One object, because each costs its address in every function that uses it.
struct {
  uint8_t* end;
  uint32_t room;
} g_answer;

}  // namespace

void StartAnswer(uint8_t* body, uint32_t capacity) {
  g_answer.end = body;
  g_answer.room = capacity;
}

uint32_t AnswerRoom() { return g_answer.room; }

uint8_t* AnswerEnd() { return g_answer.end; }

void Put8(uint32_t value) { PutBytes(&value, 1); }

void Put16(uint32_t value) { PutBytes(&value, 2); }

void Put32(uint32_t value) { PutBytes(&value, 4); }

void PutBytes(const void* bytes, uint32_t length) {
  if (length > g_answer.room) return;
  std::memcpy(g_answer.end, bytes, length);
  g_answer.end += length;
  g_answer.room -= length;
}

void PutString(const char* text, uint32_t reserve) {
  ++reserve;  // the length itself
  if (g_answer.room < reserve) return;
  uint32_t length = static_cast<uint32_t>(std::strlen(text));
  if (length > g_answer.room - reserve) length = g_answer.room - reserve;
  if (length > UINT8_MAX) length = UINT8_MAX;
  Put8(length);
  PutBytes(text, length);
}

uint8_t* PutListHead() {
  uint8_t* head = g_answer.end;
  PutBytes(head, kListHeadBytes);
  return head;
}

void FillListHead(uint8_t* head, uint32_t total, uint32_t count) {
  head[0] = static_cast<uint8_t>(total);
  head[1] = static_cast<uint8_t>(total >> 8);
  head[2] = static_cast<uint8_t>(count);
}

}  // namespace forge
