// nRF51 (Series Reference Manual v3.0). The Cortex-M0 of the chip has no SysTick: TIMER0 counts, at
// the core's rate.
#include "board_config.h"
#include "cortex_m.h"
#include "nrf_uart.h"

namespace forge {
namespace {

constexpr uint32_t kTimer = 0x40008000;
constexpr uint32_t kTimerStart = kTimer + 0x000;
constexpr uint32_t kTimerClear = kTimer + 0x00C;
constexpr uint32_t kTimerCapture = kTimer + 0x040;
constexpr uint32_t kTimerBitMode = kTimer + 0x508;
constexpr uint32_t kTimerPrescaler = kTimer + 0x510;
constexpr uint32_t kTimerCaptured = kTimer + 0x540;
constexpr uint32_t k32Bits = 3;

uint32_t g_timer_high;
uint32_t g_timer_last;

}  // namespace

DriverState DriverInit() {
  Register(kCrystalStarted) = 0;
  // The event has just been cleared: it reads as set in QEMU alone, where every register of the
  // clock reads 1.
  const bool emulated = Register(kCrystalStarted) != 0;
  Register(kCrystalStart) = 1;
  WaitForBits(kCrystalStarted, 1);
  StartUart();
  return {board_config::kClockHz, emulated};
}

uint32_t DriverTimerStart() {
  Register(kTimerBitMode) = k32Bits;
  Register(kTimerPrescaler) = 0;
  Register(kTimerClear) = 1;
  Register(kTimerStart) = 1;
  return board_config::kClockHz;
}

// To be read at least once in 2^32 ticks, 268 seconds.
uint64_t DriverTimerRead() {
  Register(kTimerCapture) = 1;
  const uint32_t now = Register(kTimerCaptured);
  if (now < g_timer_last) ++g_timer_high;
  g_timer_last = now;
  return (static_cast<uint64_t>(g_timer_high) << 32) | now;
}

}  // namespace forge
