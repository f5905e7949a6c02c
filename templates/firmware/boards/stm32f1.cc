// STM32F100 (RM0041). USART1 on PA9 (TX) and PA10 (RX). 24 MHz from the PLL, fed by the internal
// oscillator.
#include "board_config.h"
#include "cortex_m.h"
#include "stm32.h"
#include "stm32_usart1.h"

namespace forge {
namespace {

constexpr uint32_t kHsiHz = 8000000;

constexpr uint32_t kRcc = 0x40021000;
constexpr uint32_t kRccControl = kRcc + 0x00;
constexpr uint32_t kPllOn = 1u << 24;
constexpr uint32_t kPllReady = 1u << 25;
constexpr uint32_t kClockConfig = kRcc + 0x04;
constexpr uint32_t kHalfHsiTimes6 = 4u << 18;
constexpr uint32_t kSwitchToPll = 2;
constexpr uint32_t kRunsFromPll = 2u << 2;
constexpr uint32_t kApb2Enable = kRcc + 0x18;
constexpr uint32_t kGpioAAndUsart1 = 1u << 2 | 1u << 14;
constexpr uint32_t kResetStatus = kRcc + 0x24;
constexpr uint32_t kForgetResets = 1u << 24;

constexpr uint32_t kGpioAConfigHigh = 0x40010804;
constexpr uint32_t kPa9OutPa10In = 0x4B0;

// Returns the core's clock: what the board file says, or the internal oscillator's when the PLL
// does not start.
uint32_t StartClock() {
  Register(kClockConfig) = 0;
  Register(kRccControl) = Register(kRccControl) & ~kPllOn;
  Register(kClockConfig) = kHalfHsiTimes6;
  Register(kRccControl) = Register(kRccControl) | kPllOn;
  if (!WaitForBits(kRccControl, kPllReady)) return kHsiHz;
  Register(kClockConfig) = kHalfHsiTimes6 | kSwitchToPll;
  return WaitForBits(kClockConfig, kRunsFromPll) ? board_config::kClockHz : kHsiHz;
}

}  // namespace

DriverState DriverInit() {
  // A running core has an oscillator on, so that this register reads 0 in an emulator alone.
  const bool emulated = Register(kRccControl) == 0;
  const uint32_t core_hz = emulated ? board_config::kClockHz : StartClock();
  Register(kApb2Enable) = Register(kApb2Enable) | kGpioAAndUsart1;
  Register(kGpioAConfigHigh) = (Register(kGpioAConfigHigh) & ~0xFF0u) | kPa9OutPa10In;
  StartUart(core_hz);
  return {core_hz, emulated};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

ResetCause DriverResetCause() { return ReadResetFlags(kResetStatus, kForgetResets); }

}  // namespace forge
