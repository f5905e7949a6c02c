// Clocks of STM32L4 and L4+ (RM0351 section 6, RM0432 section 6): the core runs from the PLL, fed
// by the internal 16 MHz oscillator unless the board file names a crystal. AHB and APB run at its
// rate.
#pragma once

#include "board_config.h"
#include "stm32.h"
#include "stm32_usart2.h"

namespace forge {

constexpr uint32_t kHsiHz = 16000000;

constexpr uint32_t kRcc = 0x40021000;
constexpr uint32_t kRccControl = kRcc + 0x00;
constexpr uint32_t kHsiOn = 1u << 8;
constexpr uint32_t kHsiReady = 1u << 10;
constexpr uint32_t kHseOn = 1u << 16;
constexpr uint32_t kHseReady = 1u << 17;
constexpr uint32_t kHseBypass = 1u << 18;
constexpr uint32_t kPllOn = 1u << 24;
constexpr uint32_t kPllReady = 1u << 25;
constexpr uint32_t kClockConfig = kRcc + 0x08;
constexpr uint32_t kRunsFrom = 3u << 2;
constexpr uint32_t kSwitchToHsi = 1;
constexpr uint32_t kRunsFromHsi = 1u << 2;
constexpr uint32_t kSwitchToPll = 3;
constexpr uint32_t kRunsFromPll = 3u << 2;
constexpr uint32_t kAhbBy2 = 8u << 4;
constexpr uint32_t kPllConfig = kRcc + 0x0C;
constexpr uint32_t kPllFromHsi = 2;
constexpr uint32_t kPllFromHse = 3;
constexpr uint32_t kPllOutputR = 1u << 24;
constexpr uint32_t kAhb2Enable = kRcc + 0x4C;
constexpr uint32_t kApb1Enable = kRcc + 0x58;
constexpr uint32_t kPowerClock = 1u << 28;
constexpr uint32_t kApb1Enable2 = kRcc + 0x5C;
constexpr uint32_t kApb2Enable = kRcc + 0x60;
constexpr uint32_t kResetStatus = kRcc + 0x94;
constexpr uint32_t kForgetResets = 1u << 23;

constexpr uint32_t kPower = 0x40007000;
constexpr uint32_t kPowerControl2 = kPower + 0x04;
constexpr uint32_t kVddio2Valid = 1u << 9;

constexpr uint32_t kFlashAccess = 0x40022000;
constexpr uint32_t kPrefetchAndCaches = 7u << 8;
constexpr uint32_t kGpio = 0x48000000;
constexpr uint32_t kPortG = 6;
constexpr uint32_t kApb2Peripherals = 0x40010000;
constexpr uint32_t kLpuart1 = 0x40008000;

// Bits of RCC_PLLCFGR. A PLL that falls back to the internal oscillator gets the same input
// frequency.
constexpr uint32_t PllConfig(uint32_t input_hz) {
  constexpr uint32_t kSourceHz = board_config::kHseHz != 0 ? board_config::kHseHz : kHsiHz;
  const uint32_t divider =
      static_cast<uint32_t>(uint64_t{input_hz} * board_config::kPllM / kSourceHz);
  return (divider - 1) << 4 | board_config::kPllN << 8 | (board_config::kPllR / 2 - 1) << 25 |
         kPllOutputR;
}

// False: the crystal does not start, and no divider makes its PLL input of the internal oscillator.
inline bool SelectPllInput() {
  if constexpr (board_config::kHseHz != 0) {
    if (board_config::kHseBypass != 0) SetBits(kRccControl, kHseBypass, kHseBypass);
    SetBits(kRccControl, kHseOn, kHseOn);
    if (WaitForBits(kRccControl, kHseReady)) {
      Register(kPllConfig) = PllConfig(board_config::kHseHz) | kPllFromHse;
      return true;
    }
  }
  Register(kPllConfig) = PllConfig(kHsiHz) | kPllFromHsi;
  return board_config::kHseHz == 0 ||
         uint64_t{kHsiHz} * board_config::kPllM % board_config::kHseHz == 0;
}

// Lets the core run from the PLL; `prescaler` divides the AHB clock (bits of RCC_CFGR).
inline bool StartPll(uint32_t prescaler) {
  SetBits(kRccControl, kPllOn, 0);
  WaitForValue(kRccControl, kPllReady, 0);
  if (!SelectPllInput()) return false;
  SetBits(kRccControl, kPllOn, kPllOn);
  if (!WaitForBits(kRccControl, kPllReady)) return false;
  Register(kFlashAccess) = kPrefetchAndCaches | board_config::kFlashWaitStates;
  WaitForValue(kFlashAccess, 0xF, board_config::kFlashWaitStates);
  Register(kClockConfig) = prescaler | kSwitchToPll;
  return WaitForValue(kClockConfig, kRunsFrom, kRunsFromPll);
}

// Lets the core run from the internal oscillator.
inline void StartHsi() {
  SetBits(kRccControl, kHsiOn, kHsiOn);
  WaitForBits(kRccControl, kHsiReady);
  Register(kClockConfig) = kSwitchToHsi;
  WaitForValue(kClockConfig, kRunsFrom, kRunsFromHsi);
}

// Pins 2 to 15 of port G have a supply of their own, which must be declared valid (RM0432 section
// 5.1.3).
inline void ConnectUart(uint32_t core_hz, bool has_fifo) {
  EnableClock(kApb1Enable, kPowerClock);
  if (board_config::kTxPort == kPortG || board_config::kRxPort == kPortG) {
    SetBits(kPowerControl2, kVddio2Valid, kVddio2Valid);
  }
  constexpr bool kLowPower = board_config::kUartBase == kLpuart1;
  constexpr bool kOnApb2 = board_config::kUartBase >= kApb2Peripherals;
  EnableClock(kAhb2Enable, 1u << board_config::kTxPort | 1u << board_config::kRxPort);
  EnableClock(kLowPower ? kApb1Enable2
              : kOnApb2 ? kApb2Enable
                        : kApb1Enable,
              1u << board_config::kUartClockBit);
  ConnectPin(kGpio, board_config::kTxPort, board_config::kTxPin, board_config::kUartFunction);
  ConnectPin(kGpio, board_config::kRxPort, board_config::kRxPin, board_config::kUartFunction);
  StartUart(core_hz, kLowPower, has_fifo);
}

}  // namespace forge
