// A program that does what a host asks by one letter: the smallest user of board.h.
#include <cstdint>

#include "board.h"

namespace {

void Write(const char* text) {
  size_t size = 0;
  while (text[size] != 0) ++size;
  forge::UartWrite(reinterpret_cast<const uint8_t*>(text), size);
}

void WriteHex(uint64_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    const uint8_t digit = "0123456789ABCDEF"[value >> (4 * i) & 15];
    forge::UartWrite(&digit, 1);
  }
  Write(" ");
}

uint8_t Read() {
  for (;;) {
    const int byte = forge::UartRead();
    if (byte >= 0) return static_cast<uint8_t>(byte);
  }
}

uintptr_t ReadAddress() {
  uintptr_t address = 0;
  for (int i = 0; i < 4; ++i) address = address << 8 | Read();
  return address;
}

class Counted {
 public:
  Counted() : value_(0x1234) {}
  uint32_t value() const { return value_; }

 private:
  uint32_t value_;
};

Counted g_constructed;
uint32_t g_initialised = 0xCAFE;
uint32_t g_cleared;
alignas(16) __attribute__((section(".forge_arena"))) uint8_t g_tensor_arena[1024];

// What does not fit a small board, when a test asks for it.
#ifdef ROM_BYTES
extern const uint8_t g_rom[ROM_BYTES];
const uint8_t g_rom[ROM_BYTES] = {1};
#endif
#ifdef RAM_BYTES
uint8_t g_ram[RAM_BYTES];
#endif

void Spin(uint32_t loops) {
  for (uint32_t i = 0; i < loops; ++i)
    asm volatile("nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop");
}

void ReportTicks(uint32_t loops) {
  const uint64_t start = forge::BoardTicks();
  Spin(loops);
  const uint64_t end = forge::BoardTicks();
  WriteHex(start, 16);
  WriteHex(end, 16);
  Write("\n");
}

void ReportState() {
  WriteHex(forge::BoardTicksPerSecond(), 8);
  WriteHex(static_cast<uint8_t>(forge::BoardCounterKind()), 2);
  WriteHex(forge::BoardResetCause(), 2);
  WriteHex(forge::StackSize(), 8);
  WriteHex(forge::StackHighWater(), 8);
  WriteHex(forge::StackCanaryIntact() ? 1 : 0, 2);
  WriteHex(g_constructed.value(), 8);
  WriteHex(g_initialised, 8);
  WriteHex(g_cleared, 8);
  WriteHex(reinterpret_cast<uintptr_t>(g_tensor_arena), 8);
#ifdef ROM_BYTES
  forge::UartWrite(g_rom, sizeof(g_rom));
#endif
#ifdef RAM_BYTES
  forge::UartWrite(g_ram, sizeof(g_ram));
#endif
  Write("\n");
}

}  // namespace

extern "C" {

__attribute__((noinline)) uint32_t BadLoad(const volatile uint32_t* from) { return *from; }

__attribute__((noinline)) void BadInstruction() { asm volatile("udf #7"); }

__attribute__((noinline)) uint32_t Recurse(uint32_t depth) {
  volatile uint32_t room[16];
  room[depth & 15] = depth;
  return depth == UINT32_MAX ? 0 : Recurse(depth + 1) + room[depth & 15];
}

__attribute__((noinline)) float Divide(float a, float b) { return a / b; }
}

extern "C" void abort() {
  for (;;) {
  }
}

// Uses floating point, as a formatter of log lines would.
void ForgeFault(const forge::FaultRecord& record) {
  Write("fault ");
  WriteHex(record.kind, 8);
  WriteHex(record.pc, 8);
  WriteHex(record.lr, 8);
  WriteHex(record.cfsr, 8);
  WriteHex(record.hfsr, 8);
  WriteHex(record.bfar, 8);
  WriteHex(record.mmfar, 8);
  WriteHex(record.sp, 8);
  WriteHex(forge::StackHighWater(), 8);
  WriteHex(static_cast<uint32_t>(Divide(static_cast<float>(record.kind), 0.5f)), 8);
  Write("\n");
  for (;;) {
    const uint8_t command = Read();
    if (command == 'x') forge::BoardExit(8);
    if (command == 'r') forge::BoardReset();
    if (command == 'u') BadInstruction();
  }
}

int main() {
  forge::BoardInit();
  Write("hello\n");
  for (;;) {
    switch (Read()) {
      case 'e': {
        for (int i = 0; i < 256; ++i) {
          const uint8_t byte = Read();
          forge::UartWrite(&byte, 1);
        }
        break;
      }
      case 's':
        ReportState();
        break;
      case 't':
        ReportTicks(10000);
        break;
      case 'T':
        ReportTicks(20000000);
        break;
      case 'f': {
        const float quotient = Divide(22.0f, 7.0f);
        WriteHex(static_cast<uint32_t>(quotient * 1000000.0f), 8);
        Write("\n");
        break;
      }
      case 'l':
        WriteHex(BadLoad(reinterpret_cast<const uint32_t*>(ReadAddress())), 8);
        Write("\n");
        break;
      case 'u':
        BadInstruction();
        break;
      case 'v':
        asm volatile("svc #0");
        break;
      case 'o':
        WriteHex(Recurse(0), 8);
        break;
      case 'r':
        forge::BoardReset();
      case 'x':
        forge::BoardExit(7);
      default:
        Write("?\n");
    }
  }
}
