// STM32L47x and L48x (RM0351): up to 80 MHz, in the voltage range that reset leaves.
#include "board_config.h"
#include "stm32l4_l4plus.h"

namespace forge {

DriverState DriverInit() {
  StartHsi();
  const uint32_t core_hz = StartPll(0) ? board_config::kClockHz : kHsiHz;
  ConnectUart(core_hz, false);
  return {core_hz, false};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

ResetCause DriverResetCause() { return ReadResetFlags(kResetStatus, kForgetResets); }

}  // namespace forge
