// What all Cortex-M boards share, and what a board's driver (board.cc) adds to it.
#pragma once

#include <cstdint>

#include "board.h"

namespace forge {

inline volatile uint32_t& Register(uint32_t address) {
  return *reinterpret_cast<volatile uint32_t*>(address);
}

// Waits until any bit of `mask` is set, for a bounded number of reads. Emulators leave many
// registers at 0.
inline bool WaitForBits(uint32_t address, uint32_t mask, uint32_t reads = 100000) {
  while (reads-- > 0) {
    if ((Register(address) & mask) != 0) return true;
  }
  return false;
}

// Waits until the bits of `mask` are `value`, for a bounded number of reads.
inline bool WaitForValue(uint32_t address, uint32_t mask, uint32_t value, uint32_t reads = 100000) {
  while (reads-- > 0) {
    if ((Register(address) & mask) == value) return true;
  }
  return false;
}

// Gives the bits of `mask` a value and leaves the others.
inline void SetBits(uint32_t address, uint32_t mask, uint32_t value) {
  Register(address) = (Register(address) & ~mask) | value;
}

// Turns the caches of a Cortex-M7 on. No board uses DMA, so that nothing else has to care.
void EnableCaches();

// What a driver found when it set up clocks and UART.
struct DriverState {
  uint32_t core_hz;
  bool emulated;  // used on cores without a cycle counter; the others find out with that
};

DriverState DriverInit();

// Starts a timer that is finer or more available than SysTick, and returns its rate; 0: there is
// none. It is used when the core has no running cycle counter.
uint32_t DriverTimerStart();
uint64_t DriverTimerRead();

ResetCause DriverResetCause();
bool DriverUartReady();  // the UART takes a byte
void DriverUartSend(uint8_t byte);

}  // namespace forge
