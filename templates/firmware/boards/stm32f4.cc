// STM32F405/407 (RM0090). USART1 on PA9 (TX) and PA10 (RX). 168 MHz from the PLL, fed by the
// internal oscillator unless the board file names a crystal: the same image then runs on any board,
// whatever its crystal.
#include "board_config.h"
#include "cortex_m.h"

namespace forge {
namespace {

constexpr uint32_t kHsiHz = 16000000;

constexpr uint32_t kRcc = 0x40023800;
constexpr uint32_t kRccControl = kRcc + 0x00;
constexpr uint32_t kHsiReady = 1u << 1;
constexpr uint32_t kHseOn = 1u << 16;
constexpr uint32_t kHseReady = 1u << 17;
constexpr uint32_t kPllOn = 1u << 24;
constexpr uint32_t kPllReady = 1u << 25;
constexpr uint32_t kPllConfig = kRcc + 0x04;
constexpr uint32_t kPllFromHse = 1u << 22;
constexpr uint32_t kClockConfig = kRcc + 0x08;
constexpr uint32_t kApb1By4Apb2By2 = 5u << 10 | 4u << 13;
constexpr uint32_t kSwitchToPll = 2;
constexpr uint32_t kRunsFromPll = 2u << 2;
constexpr uint32_t kAhb1Enable = kRcc + 0x30;
constexpr uint32_t kApb1Enable = kRcc + 0x40;
constexpr uint32_t kApb2Enable = kRcc + 0x44;
constexpr uint32_t kResetStatus = kRcc + 0x74;

constexpr uint32_t kFlashAccess = 0x40023C00;
constexpr uint32_t kFiveWaitStatesAndCaches = 0x705;

constexpr uint32_t kGpioA = 0x40020000;
constexpr uint32_t kGpioMode = kGpioA + 0x00;
constexpr uint32_t kGpioPull = kGpioA + 0x0C;
constexpr uint32_t kGpioAlternateHigh = kGpioA + 0x24;

constexpr uint32_t kUsart1 = 0x40011000;
constexpr uint32_t kStatus = kUsart1 + 0x00;
constexpr uint32_t kRxNotEmpty = 1u << 5;
constexpr uint32_t kTxEmpty = 1u << 7;
constexpr uint32_t kData = kUsart1 + 0x04;
constexpr uint32_t kBaudRate = kUsart1 + 0x08;
constexpr uint32_t kControl1 = kUsart1 + 0x0C;
constexpr uint32_t kUsartTxRx = 1u << 13 | 1u << 3 | 1u << 2;

constexpr uint32_t kTim2 = 0x40000000;
constexpr uint32_t kTim5 = 0x40000C00;
constexpr uint32_t kTimControl = 0x00;
constexpr uint32_t kTimEvent = 0x14;
constexpr uint32_t kTimCount = 0x24;
constexpr uint32_t kTimPrescaler = 0x28;
constexpr uint32_t kTimReload = 0x2C;

// The PLL's input is divided to 1 MHz, then times 336, by 2: 168 MHz (RM0090, section 7.3.2).
constexpr uint32_t PllConfig(uint32_t input_hz) {
  return input_hz / 1000000 | 336u << 6 | 7u << 24;
}

bool SelectPllInput() {
  if constexpr (board_config::kHseHz != 0) {
    Register(kRccControl) = Register(kRccControl) | kHseOn;
    if (WaitForBits(kRccControl, kHseReady)) {
      Register(kPllConfig) = PllConfig(board_config::kHseHz) | kPllFromHse;
      return true;
    }
  }
  Register(kPllConfig) = PllConfig(kHsiHz);
  return WaitForBits(kRccControl, kHsiReady);
}

// Returns the core's clock: what the board file says, or the internal oscillator's when the PLL
// does not start.
uint32_t StartClock() {
  Register(kClockConfig) = 0;
  Register(kRccControl) = Register(kRccControl) & ~kPllOn;
  if (!SelectPllInput()) return kHsiHz;
  Register(kRccControl) = Register(kRccControl) | kPllOn;
  if (!WaitForBits(kRccControl, kPllReady)) return kHsiHz;
  Register(kFlashAccess) = kFiveWaitStatesAndCaches;
  Register(kClockConfig) = kApb1By4Apb2By2 | kSwitchToPll;
  return WaitForBits(kClockConfig, kRunsFromPll) ? board_config::kClockHz : kHsiHz;
}

void StartTimer(uint32_t timer, uint32_t prescaler) {
  Register(timer + kTimPrescaler) = prescaler;
  Register(timer + kTimReload) = 0xFFFFFFFF;
  Register(timer + kTimEvent) = 1;
  Register(timer + kTimCount) = 0;
  Register(timer + kTimControl) = 1;
}

}  // namespace

DriverState DriverInit() {
  // A running core has an oscillator on, so that this register reads 0 in an emulator alone.
  const bool emulated = Register(kRccControl) == 0;
  const uint32_t core_hz = emulated ? board_config::kClockHz : StartClock();
  const uint32_t usart_hz = core_hz == kHsiHz ? kHsiHz : core_hz / 2;
  Register(kAhb1Enable) = Register(kAhb1Enable) | 1;
  Register(kApb2Enable) = Register(kApb2Enable) | 1u << 4;
  Register(kGpioPull) = (Register(kGpioPull) & ~(3u << 20)) | 1u << 20;
  Register(kGpioAlternateHigh) = (Register(kGpioAlternateHigh) & ~0xFF0u) | 0x770;
  Register(kGpioMode) = (Register(kGpioMode) & ~(0xFu << 18)) | 0xAu << 18;
  Register(kBaudRate) = (usart_hz + board_config::kBaud / 2) / board_config::kBaud;
  Register(kControl1) = kUsartTxRx;
  return {core_hz, emulated};
}

// In the emulator alone: on hardware the cycle counter runs. TIM2 counts every tick in 32 bits,
// TIM5 every 65536th, give or take one.
uint32_t DriverTimerStart() {
  Register(kApb1Enable) = Register(kApb1Enable) | 1u << 0 | 1u << 3;
  StartTimer(kTim2, 0);
  StartTimer(kTim5, 0xFFFF);
  return board_config::kEmulatorTimerHz;
}

uint64_t DriverTimerRead() {
  const uint64_t coarse = static_cast<uint64_t>(Register(kTim5 + kTimCount)) << 16;
  const uint32_t fine = Register(kTim2 + kTimCount);
  return coarse + static_cast<int32_t>(fine - static_cast<uint32_t>(coarse));
}

ResetCause DriverResetCause() {
  const uint32_t status = Register(kResetStatus);
  Register(kResetStatus) = status | 1u << 24;
  if ((status & (1u << 28)) != 0) return ResetCause::kSoftware;
  if ((status & (3u << 29)) != 0) return ResetCause::kWatchdog;
  if ((status & (1u << 31)) != 0) return ResetCause::kOther;
  if ((status & (1u << 27 | 1u << 25)) != 0) return ResetCause::kPowerOn;
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
