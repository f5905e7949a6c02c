// Bodies of frames: little-endian numbers, read at fixed places of a request and written one after
// the other into the answer. There is one answer at a time.
#pragma once

#include <cstdint>
#include <cstring>

namespace forge {

// A little-endian number of a request; the link has checked that the body is long enough.
template <typename T>
T Get(const uint8_t* body, uint32_t offset) {
  T value;
  std::memcpy(&value, body + offset, sizeof(value));
  return value;
}

// What the handler of a request gets.
struct Request {
  const uint8_t* body;
  uint32_t bytes;
  uint32_t detail;  // goes into the error answer when the handler fails
};

// Sets where the answer's body goes.
void StartAnswer(uint8_t* body, uint32_t capacity);

// Bytes that the answer's body may still grow, and where they go.
uint32_t AnswerRoom();
uint8_t* AnswerEnd();

// What does not fit is left out.
void Put8(uint32_t value);
void Put16(uint32_t value);
void Put32(uint32_t value);
void PutBytes(const void* bytes, uint32_t length);

// A text after its length in one byte; cut to what fits when `reserve` bytes are to stay free.
void PutString(const char* text, uint32_t reserve);

// Head of an answer that lists items from an index on: how many there are, and how many of them
// follow. It is put before the items and filled in after them.
uint8_t* PutListHead();
void FillListHead(uint8_t* head, uint32_t total, uint32_t count);

}  // namespace forge
