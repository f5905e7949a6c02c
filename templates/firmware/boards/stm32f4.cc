// STM32F4 (RM0090, RM0368, RM0390). The numbers of clock, UART and pins are the board file's.
#include "board_config.h"
#include "stm32_usart1.h"
#include "stm32f4_f7.h"

namespace forge {
namespace {

constexpr uint32_t kPrefetchAndCaches = 7u << 8;

constexpr uint32_t kTim2 = 0x40000000;
constexpr uint32_t kTim5 = 0x40000C00;
constexpr uint32_t kTimControl = 0x00;
constexpr uint32_t kTimEvent = 0x14;
constexpr uint32_t kTimCount = 0x24;
constexpr uint32_t kTimPrescaler = 0x28;
constexpr uint32_t kTimReload = 0x2C;

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
  const uint32_t core_hz = emulated ? board_config::kClockHz : StartClock(kPrefetchAndCaches);
  StartUart(ConnectUart(core_hz));
  return {core_hz, emulated};
}

// In the emulator alone: on hardware the cycle counter runs. TIM2 counts every tick in 32 bits,
// TIM5 every 65536th, give or take one.
uint32_t DriverTimerStart() {
  if (board_config::kEmulatorTimerHz == 0) return 0;
  EnableClock(kApb1Enable, 1u << 0 | 1u << 3);
  StartTimer(kTim2, 0);
  StartTimer(kTim5, 0xFFFF);
  return board_config::kEmulatorTimerHz;
}

uint64_t DriverTimerRead() {
  const uint64_t coarse = static_cast<uint64_t>(Register(kTim5 + kTimCount)) << 16;
  const uint32_t fine = Register(kTim2 + kTimCount);
  return coarse + static_cast<int32_t>(fine - static_cast<uint32_t>(coarse));
}

ResetCause DriverResetCause() { return ReadResetFlags(kResetStatus, kForgetResets); }

}  // namespace forge
