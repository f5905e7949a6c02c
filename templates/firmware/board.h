// What every board gives to the firmware. The same ELF runs on the board and in its emulator.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forge {

// Clocks, UART and tick counter; called once, first of all. Every wait in it is bounded.
void BoardInit();

// Sends bytes; gives up, and says nothing, when the UART does not take them.
void UartWrite(const uint8_t* data, size_t size);

// Returns the next received byte, or -1 when there is none.
int UartRead();

// Counts up from BoardInit, and never wraps. In the emulator a tick is a fixed number of
// instructions.
uint64_t BoardTicks();
uint32_t BoardTicksPerSecond();

enum class CounterKind : uint8_t { kNone = 0, kCycles = 1, kEmulatedTicks = 2 };
CounterKind BoardCounterKind();

enum class ResetCause : uint8_t {
  kUnknown = 0,
  kPowerOn = 1,
  kPin = 2,
  kWatchdog = 3,
  kSoftware = 4,
  kOther = 5,
};
uint8_t BoardResetCause();

[[noreturn]] void BoardReset();

// Leaves the emulator with this exit status; on hardware, sleeps for ever.
[[noreturn]] void BoardExit(int status);

// The stack is painted at boot; its last bytes are the canary.
uint32_t StackSize();
uint32_t StackHighWater();
bool StackCanaryIntact();

// What the processor knew when it took a fault. `kind` is a code of Status. When the stack was
// full, the processor could not save PC and LR: `pc` is then the return address found nearest to
// the end of the stack, and `lr` is 0.
struct FaultRecord {
  uint32_t kind, pc, lr, cfsr, hfsr, bfar, mmfar, sp;
};

}  // namespace forge

// Called with interrupts off and with at least half of the stack free. What the program had on its
// stack may be gone. A fault in here calls it again.
extern "C" [[noreturn]] void ForgeFault(const forge::FaultRecord& record);
