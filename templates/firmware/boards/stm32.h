// What STM32 families from F4 on have in common: GPIO ports and the flags of the last reset.
#pragma once

#include "cortex_m.h"

namespace forge {

// A GPIO port's registers (RM0090 section 8.4; the same in RM0351, RM0385, RM0433 and RM0456).
constexpr uint32_t kGpioPortBytes = 0x400;
constexpr uint32_t kGpioMode = 0x00;
constexpr uint32_t kGpioSpeed = 0x08;
constexpr uint32_t kGpioPull = 0x0C;
constexpr uint32_t kGpioAlternate = 0x20;

// Gives a pin to the peripheral behind an alternate function, with a pull-up: a line that is not
// connected then reads as idle.
inline void ConnectPin(uint32_t gpio, uint32_t port, uint32_t pin, uint32_t function) {
  const uint32_t base = gpio + kGpioPortBytes * port;
  SetBits(base + kGpioPull, 3u << (2 * pin), 1u << (2 * pin));
  SetBits(base + kGpioSpeed, 3u << (2 * pin), 1u << (2 * pin));
  const uint32_t shift = 4 * (pin % 8);
  SetBits(base + kGpioAlternate + 4 * (pin / 8), 0xFu << shift, function << shift);
  SetBits(base + kGpioMode, 3u << (2 * pin), 2u << (2 * pin));
}

// Turns peripherals on. The read back takes the clocks that they need before their first use
// (erratum "Delay after an RCC peripheral clock enabling").
inline void EnableClock(uint32_t address, uint32_t mask) {
  SetBits(address, mask, mask);
  [[maybe_unused]] const uint32_t settled = Register(address);
}

// RCC_CSR of F1, F4, F7, L4 and U5 has its flags in the same places (RM0090 section 7.3.21, RM0351
// section 6.4.29); the bit that clears them is not.
inline ResetCause ReadResetFlags(uint32_t csr, uint32_t clear) {
  const uint32_t status = Register(csr);
  Register(csr) = status | clear;
  if ((status & (1u << 28)) != 0) return ResetCause::kSoftware;
  if ((status & (3u << 29)) != 0) return ResetCause::kWatchdog;
  if ((status & (1u << 31)) != 0) return ResetCause::kOther;
  if ((status & (1u << 27)) != 0) return ResetCause::kPowerOn;
  if ((status & (1u << 26)) != 0) return ResetCause::kPin;
  return ResetCause::kUnknown;
}

}  // namespace forge
