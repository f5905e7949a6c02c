// STM32H742, H743 and H753 (RM0433): up to 400 MHz in voltage scale 1, which all revisions of the
// chip have, from PLL1, fed by the internal oscillator of 64 MHz unless the board file names a
// crystal. AXI and AHB run at half of the core's clock, APB at a quarter.
#include "board_config.h"
#include "stm32.h"
#include "stm32_usart2.h"

namespace forge {
namespace {

constexpr uint32_t kHsiHz = 64000000;

constexpr uint32_t kRcc = 0x58024400;
constexpr uint32_t kRccControl = kRcc + 0x00;
constexpr uint32_t kHsiOn = 1u << 0;
constexpr uint32_t kHsiReady = 1u << 2;
constexpr uint32_t kHsiDivider = 3u << 3;
constexpr uint32_t kHseOn = 1u << 16;
constexpr uint32_t kHseReady = 1u << 17;
constexpr uint32_t kHseBypass = 1u << 18;
constexpr uint32_t kPllOn = 1u << 24;
constexpr uint32_t kPllReady = 1u << 25;
constexpr uint32_t kClockConfig = kRcc + 0x10;
constexpr uint32_t kRunsFrom = 7u << 3;
constexpr uint32_t kSwitchToPll = 3;
constexpr uint32_t kRunsFromPll = 3u << 3;
constexpr uint32_t kDomain1 = kRcc + 0x18;
constexpr uint32_t kAhbBy2ApbBy2 = 8u << 0 | 4u << 4;
constexpr uint32_t kDomain2 = kRcc + 0x1C;
constexpr uint32_t kBothApbBy2 = 4u << 4 | 4u << 8;
constexpr uint32_t kDomain3 = kRcc + 0x20;
constexpr uint32_t kApbBy2 = 4u << 4;
constexpr uint32_t kPllSelect = kRcc + 0x28;
constexpr uint32_t kPllFromHse = 2;
constexpr uint32_t kPllConfig = kRcc + 0x2C;
constexpr uint32_t kPll1Bits = 0xF | 7u << 16;
constexpr uint32_t kPllOutputP = 1u << 16;
constexpr uint32_t kPllDividers = kRcc + 0x30;
constexpr uint32_t kResetStatus = kRcc + 0xD0;
constexpr uint32_t kForgetResets = 1u << 16;
constexpr uint32_t kAhb4Enable = kRcc + 0xE0;
constexpr uint32_t kApb1Enable = kRcc + 0xE8;
constexpr uint32_t kApb2Enable = kRcc + 0xF0;

constexpr uint32_t kPowerStatus = 0x58024804;
constexpr uint32_t kSupplyReady = 1u << 13;
constexpr uint32_t kPowerControl3 = 0x5802480C;
constexpr uint32_t kSupplyBits = 7;
constexpr uint32_t kSupplyFromLdo = 1u << 1;
constexpr uint32_t kVoltageScaling = 0x58024818;
constexpr uint32_t kScale1 = 3u << 14;
constexpr uint32_t kScalingReady = 1u << 13;

constexpr uint32_t kFlashAccess = 0x52002000;
constexpr uint32_t kSignalDelay = 2u << 4;  // RM0433, table of wait states: AXI above 185 MHz
constexpr uint32_t kGpio = 0x58020000;
constexpr uint32_t kApb2Peripherals = 0x40010000;

constexpr uint32_t kSourceHz = board_config::kHseHz != 0 ? board_config::kHseHz : kHsiHz;
constexpr uint32_t kInputHz = kSourceHz / board_config::kPllM;

// PLL1RGE: the range that the PLL's input is in, from 2 MHz on (RM0433, chapter 8, RCC_PLLCFGR).
constexpr uint32_t kInputRange = kInputHz < 4000000 ? 1 : kInputHz < 8000000 ? 2 : 3;

bool StartSupply() {
  SetBits(kPowerControl3, kSupplyBits, kSupplyFromLdo);
  if (!WaitForBits(kPowerStatus, kSupplyReady)) return false;
  SetBits(kVoltageScaling, kScale1, kScale1);
  return WaitForBits(kVoltageScaling, kScalingReady);
}

// A PLL that falls back to the internal oscillator gets the same input frequency; false: no divider
// makes it.
bool SelectPllInput() {
  if constexpr (board_config::kHseHz != 0) {
    if (board_config::kHseBypass != 0) SetBits(kRccControl, kHseBypass, kHseBypass);
    SetBits(kRccControl, kHseOn, kHseOn);
    if (WaitForBits(kRccControl, kHseReady)) {
      Register(kPllSelect) = board_config::kPllM << 4 | kPllFromHse;
      return true;
    }
  }
  Register(kPllSelect) = kHsiHz / kInputHz << 4;
  return kHsiHz % kInputHz == 0;
}

// Returns the core's clock: what the board file says, or the internal oscillator's when supply or
// PLL do not come up.
uint32_t StartClock() {
  SetBits(kRccControl, kHsiOn | kHsiDivider, kHsiOn);
  WaitForBits(kRccControl, kHsiReady);
  Register(kClockConfig) = 0;
  WaitForValue(kClockConfig, kRunsFrom, 0);
  SetBits(kRccControl, kPllOn, 0);
  WaitForValue(kRccControl, kPllReady, 0);
  if (!StartSupply()) return kHsiHz;
  if (!SelectPllInput()) return kHsiHz;
  SetBits(kPllConfig, kPll1Bits, kPllOutputP | kInputRange << 2);
  Register(kPllDividers) =
      (board_config::kPllN - 1) | (board_config::kPllP - 1) << 9 | 1u << 16 | 1u << 24;
  SetBits(kRccControl, kPllOn, kPllOn);
  if (!WaitForBits(kRccControl, kPllReady)) return kHsiHz;
  Register(kFlashAccess) = kSignalDelay | board_config::kFlashWaitStates;
  WaitForValue(kFlashAccess, 0xF, board_config::kFlashWaitStates);
  Register(kDomain1) = kAhbBy2ApbBy2;
  Register(kDomain2) = kBothApbBy2;
  Register(kDomain3) = kApbBy2;
  Register(kClockConfig) = kSwitchToPll;
  return WaitForValue(kClockConfig, kRunsFrom, kRunsFromPll) ? board_config::kClockHz : kHsiHz / 2;
}

}  // namespace

DriverState DriverInit() {
  EnableCaches();
  const uint32_t core_hz = StartClock();
  constexpr bool kOnApb2 = board_config::kUartBase >= kApb2Peripherals;
  EnableClock(kAhb4Enable, 1u << board_config::kTxPort | 1u << board_config::kRxPort);
  EnableClock(kOnApb2 ? kApb2Enable : kApb1Enable, 1u << board_config::kUartClockBit);
  ConnectPin(kGpio, board_config::kTxPort, board_config::kTxPin, board_config::kUartFunction);
  ConnectPin(kGpio, board_config::kRxPort, board_config::kRxPin, board_config::kUartFunction);
  StartUart(core_hz == kHsiHz ? kHsiHz : core_hz / 4, false, true);
  return {core_hz, false};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

ResetCause DriverResetCause() {
  const uint32_t status = Register(kResetStatus);
  Register(kResetStatus) = status | kForgetResets;
  if ((status & (1u << 24)) != 0) return ResetCause::kSoftware;
  if ((status & (1u << 26 | 1u << 28)) != 0) return ResetCause::kWatchdog;
  if ((status & (1u << 30)) != 0) return ResetCause::kOther;
  if ((status & (1u << 21 | 1u << 23)) != 0) return ResetCause::kPowerOn;
  if ((status & (1u << 22)) != 0) return ResetCause::kPin;
  return ResetCause::kUnknown;
}

}  // namespace forge
