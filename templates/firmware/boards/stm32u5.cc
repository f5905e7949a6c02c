// STM32U575 and U585 without TrustZone (RM0456; TZEN is 0 as the chips leave the factory): up to
// 160 MHz from PLL1, fed by the internal 16 MHz oscillator unless the board file names a crystal.
// AHB and APB run at its rate.
#include "board_config.h"
#include "stm32.h"
#include "stm32_usart2.h"

namespace forge {
namespace {

constexpr uint32_t kHsiHz = 16000000;

constexpr uint32_t kRcc = 0x46020C00;
constexpr uint32_t kRccControl = kRcc + 0x000;
constexpr uint32_t kHsiOn = 1u << 8;
constexpr uint32_t kHsiReady = 1u << 10;
constexpr uint32_t kHseOn = 1u << 16;
constexpr uint32_t kHseReady = 1u << 17;
constexpr uint32_t kHseBypass = 1u << 18;
constexpr uint32_t kPllOn = 1u << 24;
constexpr uint32_t kPllReady = 1u << 25;
constexpr uint32_t kClockConfig = kRcc + 0x01C;
constexpr uint32_t kRunsFrom = 3u << 2;
constexpr uint32_t kSwitchToHsi = 1;
constexpr uint32_t kRunsFromHsi = 1u << 2;
constexpr uint32_t kSwitchToPll = 3;
constexpr uint32_t kRunsFromPll = 3u << 2;
constexpr uint32_t kPllConfig = kRcc + 0x028;
constexpr uint32_t kPllFromHsi = 2;
constexpr uint32_t kPllFromHse = 3;
constexpr uint32_t kPllOutputR = 1u << 18;
constexpr uint32_t kPllDividers = kRcc + 0x034;
constexpr uint32_t kAhb2Enable = kRcc + 0x08C;
constexpr uint32_t kAhb3Enable = kRcc + 0x094;
constexpr uint32_t kPowerClock = 1u << 2;
constexpr uint32_t kApb1Enable = kRcc + 0x09C;
constexpr uint32_t kApb2Enable = kRcc + 0x0A4;
constexpr uint32_t kResetStatus = kRcc + 0x0F4;
constexpr uint32_t kForgetResets = 1u << 23;

constexpr uint32_t kVoltageScaling = 0x4602080C;
constexpr uint32_t kRange1 = 3u << 16;
constexpr uint32_t kScalingReady = 1u << 15;
constexpr uint32_t kBooster = 1u << 18;
constexpr uint32_t kBoosterReady = 1u << 14;

constexpr uint32_t kFlashAccess = 0x40022000;
constexpr uint32_t kPrefetch = 1u << 8;
constexpr uint32_t kCacheControl = 0x40030400;
constexpr uint32_t kGpio = 0x42020000;
constexpr uint32_t kApb2Peripherals = 0x40010000;

constexpr uint32_t kSourceHz = board_config::kHseHz != 0 ? board_config::kHseHz : kHsiHz;
constexpr uint32_t kInputHz = kSourceHz / board_config::kPllM;
constexpr uint32_t kInputRange = kInputHz < 8000000 ? 0 : 3;  // RM0456, RCC_PLL1CFGR

// The booster's clock is the PLL's source divided to 16 MHz at most; PLL1MBOOST 0 divides by 1,
// n by 2n (RM0456, RCC_PLL1CFGR).
constexpr uint32_t BoosterDivider(uint32_t source_hz) {
  const uint32_t divider = (source_hz + 15999999) / 16000000;
  return divider <= 1 ? 0 : (divider + 1) / 2;
}

constexpr uint32_t PllConfig(uint32_t source_hz) {
  return kInputRange << 2 | (source_hz / kInputHz - 1) << 8 | BoosterDivider(source_hz) << 12 |
         kPllOutputR;
}

// A PLL that falls back to the internal oscillator gets the same input frequency; false: no divider
// makes it.
bool SelectPllInput() {
  if constexpr (board_config::kHseHz != 0) {
    if (board_config::kHseBypass != 0) SetBits(kRccControl, kHseBypass, kHseBypass);
    SetBits(kRccControl, kHseOn, kHseOn);
    if (WaitForBits(kRccControl, kHseReady)) {
      Register(kPllConfig) = PllConfig(board_config::kHseHz) | kPllFromHse;
      return true;
    }
  }
  Register(kPllConfig) = PllConfig(kHsiHz) | kPllFromHsi;
  return kHsiHz % kInputHz == 0;
}

// Range 1 first, the booster once its clock is there, the PLL last (RM0456, chapter 10).
bool StartPll() {
  EnableClock(kAhb3Enable, kPowerClock);
  SetBits(kRccControl, kPllOn, 0);
  WaitForValue(kRccControl, kPllReady, 0);
  SetBits(kVoltageScaling, kRange1, kRange1);
  if (!WaitForBits(kVoltageScaling, kScalingReady)) return false;
  if (!SelectPllInput()) return false;
  Register(kPllDividers) =
      (board_config::kPllN - 1) | 1u << 9 | 1u << 16 | (board_config::kPllR - 1) << 24;
  SetBits(kVoltageScaling, kBooster, kBooster);
  if (!WaitForBits(kVoltageScaling, kBoosterReady)) return false;
  SetBits(kRccControl, kPllOn, kPllOn);
  if (!WaitForBits(kRccControl, kPllReady)) return false;
  Register(kFlashAccess) = kPrefetch | board_config::kFlashWaitStates;
  WaitForValue(kFlashAccess, 0xF, board_config::kFlashWaitStates);
  SetBits(kClockConfig, 3, kSwitchToPll);
  return WaitForValue(kClockConfig, kRunsFrom, kRunsFromPll);
}

}  // namespace

DriverState DriverInit() {
  SetBits(kRccControl, kHsiOn, kHsiOn);
  WaitForBits(kRccControl, kHsiReady);
  SetBits(kClockConfig, 3, kSwitchToHsi);
  WaitForValue(kClockConfig, kRunsFrom, kRunsFromHsi);
  const uint32_t core_hz = StartPll() ? board_config::kClockHz : kHsiHz;
  SetBits(kCacheControl, 1, 1);
  constexpr bool kOnApb2 = board_config::kUartBase >= kApb2Peripherals;
  EnableClock(kAhb2Enable, 1u << board_config::kTxPort | 1u << board_config::kRxPort);
  EnableClock(kOnApb2 ? kApb2Enable : kApb1Enable, 1u << board_config::kUartClockBit);
  ConnectPin(kGpio, board_config::kTxPort, board_config::kTxPin, board_config::kUartFunction);
  ConnectPin(kGpio, board_config::kRxPort, board_config::kRxPin, board_config::kUartFunction);
  StartUart(core_hz, false, true);
  return {core_hz, false};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

ResetCause DriverResetCause() { return ReadResetFlags(kResetStatus, kForgetResets); }

}  // namespace forge
