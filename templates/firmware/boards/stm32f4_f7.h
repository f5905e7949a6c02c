// Clocks of STM32F4 and F7 (RM0090 section 7, RM0390 section 6, RM0385 section 5): the core runs
// from the PLL, fed by the internal oscillator unless the board file names a crystal; without
// over-drive the voltage scale that reset leaves is the right one.
#pragma once

#include "board_config.h"
#include "stm32.h"

namespace forge {

constexpr uint32_t kHsiHz = 16000000;

constexpr uint32_t kRcc = 0x40023800;
constexpr uint32_t kRccControl = kRcc + 0x00;
constexpr uint32_t kHsiOn = 1u << 0;
constexpr uint32_t kHsiReady = 1u << 1;
constexpr uint32_t kHseOn = 1u << 16;
constexpr uint32_t kHseReady = 1u << 17;
constexpr uint32_t kHseBypass = 1u << 18;
constexpr uint32_t kPllOn = 1u << 24;
constexpr uint32_t kPllReady = 1u << 25;
constexpr uint32_t kPllConfig = kRcc + 0x04;
constexpr uint32_t kPllFromHse = 1u << 22;
constexpr uint32_t kClockConfig = kRcc + 0x08;
constexpr uint32_t kApb1By4Apb2By2 = 5u << 10 | 4u << 13;
constexpr uint32_t kSwitchToPll = 2;
constexpr uint32_t kRunsFrom = 3u << 2;
constexpr uint32_t kRunsFromPll = 2u << 2;
constexpr uint32_t kAhb1Enable = kRcc + 0x30;
constexpr uint32_t kApb1Enable = kRcc + 0x40;
constexpr uint32_t kApb2Enable = kRcc + 0x44;
constexpr uint32_t kPowerClock = 1u << 28;
constexpr uint32_t kResetStatus = kRcc + 0x74;
constexpr uint32_t kForgetResets = 1u << 24;

constexpr uint32_t kPowerControl = 0x40007000;
constexpr uint32_t kPowerStatus = 0x40007004;
constexpr uint32_t kOverDrive = 1u << 16;
constexpr uint32_t kOverDriveSwitch = 1u << 17;

constexpr uint32_t kFlashAccess = 0x40023C00;
constexpr uint32_t kGpio = 0x40020000;
constexpr uint32_t kApb2Peripherals = 0x40010000;

// Bits of RCC_PLLCFGR. A PLL that falls back to the internal oscillator gets the same input
// frequency.
constexpr uint32_t PllConfig(uint32_t input_hz) {
  constexpr uint32_t kSourceHz = board_config::kHseHz != 0 ? board_config::kHseHz : kHsiHz;
  const uint32_t divider =
      static_cast<uint32_t>(uint64_t{input_hz} * board_config::kPllM / kSourceHz);
  return divider | board_config::kPllN << 6 | (board_config::kPllP / 2 - 1) << 16 |
         board_config::kPllQ << 24;
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
  Register(kPllConfig) = PllConfig(kHsiHz);
  return board_config::kHseHz == 0 ||
         uint64_t{kHsiHz} * board_config::kPllM % board_config::kHseHz == 0;
}

// The core's supply is raised for the highest clocks, after the PLL has been started (RM0390
// section 5.1.4, RM0385 section 4.1.4).
inline bool StartOverDrive() {
  if constexpr (board_config::kOverDrive != 0) {
    EnableClock(kApb1Enable, kPowerClock);
    SetBits(kPowerControl, kOverDrive, kOverDrive);
    if (!WaitForBits(kPowerStatus, kOverDrive)) return false;
    SetBits(kPowerControl, kOverDriveSwitch, kOverDriveSwitch);
    return WaitForBits(kPowerStatus, kOverDriveSwitch);
  }
  return true;
}

// Returns the core's clock: what the board file says, or the internal oscillator's when the PLL
// does not start.
inline uint32_t StartClock(uint32_t flash_access) {
  SetBits(kRccControl, kHsiOn, kHsiOn);
  if (!WaitForBits(kRccControl, kHsiReady)) return kHsiHz;
  Register(kClockConfig) = 0;
  WaitForValue(kClockConfig, kRunsFrom, 0);
  SetBits(kRccControl, kPllOn, 0);
  WaitForValue(kRccControl, kPllReady, 0);
  if (!SelectPllInput()) return kHsiHz;
  SetBits(kRccControl, kPllOn, kPllOn);
  if (!StartOverDrive()) return kHsiHz;
  if (!WaitForBits(kRccControl, kPllReady)) return kHsiHz;
  Register(kFlashAccess) = flash_access | board_config::kFlashWaitStates;
  Register(kClockConfig) = kApb1By4Apb2By2 | kSwitchToPll;
  return WaitForValue(kClockConfig, kRunsFrom, kRunsFromPll) ? board_config::kClockHz : kHsiHz;
}

// Turns the UART and its pins on; returns the frequency that its baud rate is made of.
inline uint32_t ConnectUart(uint32_t core_hz) {
  constexpr bool kOnApb2 = board_config::kUartBase >= kApb2Peripherals;
  EnableClock(kAhb1Enable, 1u << board_config::kTxPort | 1u << board_config::kRxPort);
  EnableClock(kOnApb2 ? kApb2Enable : kApb1Enable, 1u << board_config::kUartClockBit);
  ConnectPin(kGpio, board_config::kTxPort, board_config::kTxPin, board_config::kUartFunction);
  ConnectPin(kGpio, board_config::kRxPort, board_config::kRxPin, board_config::kUartFunction);
  return core_hz == kHsiHz ? kHsiHz : core_hz / (kOnApb2 ? 2 : 4);
}

}  // namespace forge
