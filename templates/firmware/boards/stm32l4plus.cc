// STM32L4R/S and L4P/Q (RM0432): up to 120 MHz, above 80 MHz with the supply boosted.
#include "board_config.h"
#include "stm32l4_l4plus.h"

namespace forge {
namespace {

constexpr uint32_t kBoostAboveHz = 80000000;
constexpr uint32_t kPowerControl5 = kPower + 0x80;
constexpr uint32_t kNotBoosted = 1u << 8;
constexpr uint32_t kSettleLoops = 200;

// Above 80 MHz: boost, then the PLL with AHB at half the rate for 1 us at least (RM0432
// section 5.1.8).
bool StartClock() {
  if (board_config::kClockHz <= kBoostAboveHz) return StartPll(0);
  EnableClock(kApb1Enable, kPowerClock);
  SetBits(kPowerControl5, kNotBoosted, 0);
  if (!StartPll(kAhbBy2)) return false;
  for (uint32_t i = 0; i < kSettleLoops; ++i) asm volatile("nop");
  Register(kClockConfig) = kSwitchToPll;
  return true;
}

}  // namespace

DriverState DriverInit() {
  StartHsi();
  const uint32_t core_hz = StartClock() ? board_config::kClockHz : kHsiHz;
  ConnectUart(core_hz, true);
  return {core_hz, false};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

ResetCause DriverResetCause() { return ReadResetFlags(kResetStatus, kForgetResets); }

}  // namespace forge
