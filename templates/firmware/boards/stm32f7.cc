// STM32F74x and F75x (RM0385). The numbers of clock, UART and pins are the board file's.
#include "board_config.h"
#include "stm32_usart2.h"
#include "stm32f4_f7.h"

namespace forge {
namespace {

constexpr uint32_t kPrefetchAndAccelerator = 3u << 8;

}  // namespace

DriverState DriverInit() {
  EnableCaches();
  const uint32_t core_hz = StartClock(kPrefetchAndAccelerator);
  StartUart(ConnectUart(core_hz), false, false);
  return {core_hz, false};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

ResetCause DriverResetCause() { return ReadResetFlags(kResetStatus, kForgetResets); }

}  // namespace forge
