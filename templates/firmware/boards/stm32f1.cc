// STM32F100 (RM0041). USART1 on PA9 (TX) and PA10 (RX). 24 MHz from the PLL, fed by the internal
// oscillator.
#include "board_config.h"
#include "cortex_m.h"

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

constexpr uint32_t kGpioAConfigHigh = 0x40010804;
constexpr uint32_t kPa9OutPa10In = 0x4B0;

constexpr uint32_t kUsart1 = 0x40013800;
constexpr uint32_t kStatus = kUsart1 + 0x00;
constexpr uint32_t kRxNotEmpty = 1u << 5;
constexpr uint32_t kTxEmpty = 1u << 7;
constexpr uint32_t kData = kUsart1 + 0x04;
constexpr uint32_t kBaudRate = kUsart1 + 0x08;
constexpr uint32_t kControl1 = kUsart1 + 0x0C;
constexpr uint32_t kUsartTxRx = 1u << 13 | 1u << 3 | 1u << 2;

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
  Register(kBaudRate) = (core_hz + board_config::kBaud / 2) / board_config::kBaud;
  Register(kControl1) = kUsartTxRx;
  return {core_hz, emulated};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

ResetCause DriverResetCause() {
  const uint32_t status = Register(kResetStatus);
  Register(kResetStatus) = status | 1u << 24;
  if ((status & (1u << 28)) != 0) return ResetCause::kSoftware;
  if ((status & (3u << 29)) != 0) return ResetCause::kWatchdog;
  if ((status & (1u << 31)) != 0) return ResetCause::kOther;
  if ((status & (1u << 27)) != 0) return ResetCause::kPowerOn;
  if ((status & (1u << 26)) != 0) return ResetCause::kPin;
  return ResetCause::kUnknown;
}

bool DriverUartReady() { return (Register(kStatus) & kTxEmpty) != 0; }

void DriverUartSend(uint8_t byte) { Register(kData) = byte; }

int UartRead() {
  if ((Register(kStatus) & kRxNotEmpty) == 0) return -1;
  return static_cast<int>(Register(kData) & 0xFF);
}

}  // namespace forge
