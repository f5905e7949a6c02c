// nRF51 (Series Reference Manual v3.0). The Cortex-M0 of the chip has no SysTick: TIMER0 counts, at
// the core's rate.
#include "board_config.h"
#include "cortex_m.h"

namespace forge {
namespace {

constexpr uint32_t kResetReason = 0x40000400;
constexpr uint32_t kCrystalStart = 0x40000000;
constexpr uint32_t kCrystalStarted = 0x40000100;

constexpr uint32_t kUart = 0x40002000;
constexpr uint32_t kStartRx = kUart + 0x000;
constexpr uint32_t kStartTx = kUart + 0x008;
constexpr uint32_t kRxReady = kUart + 0x108;
constexpr uint32_t kTxReady = kUart + 0x11C;
constexpr uint32_t kEnable = kUart + 0x500;
constexpr uint32_t kTxPin = kUart + 0x50C;
constexpr uint32_t kRxPin = kUart + 0x514;
constexpr uint32_t kRxData = kUart + 0x518;
constexpr uint32_t kTxData = kUart + 0x51C;
constexpr uint32_t kBaudRate = kUart + 0x524;
constexpr uint32_t kUartOn = 4;

constexpr uint32_t kGpioPinConfig = 0x50000700;
constexpr uint32_t kGpioSet = 0x50000508;
constexpr uint32_t kGpioOutput = 3;

constexpr uint32_t kTimer = 0x40008000;
constexpr uint32_t kTimerStart = kTimer + 0x000;
constexpr uint32_t kTimerClear = kTimer + 0x00C;
constexpr uint32_t kTimerCapture = kTimer + 0x040;
constexpr uint32_t kTimerBitMode = kTimer + 0x508;
constexpr uint32_t kTimerPrescaler = kTimer + 0x510;
constexpr uint32_t kTimerCaptured = kTimer + 0x540;
constexpr uint32_t k32Bits = 3;

bool g_tx_busy;
uint32_t g_timer_high;
uint32_t g_timer_last;

// BAUDRATE is the rate in units of 16 MHz / 2^32, of which the upper 20 bits count (reference
// manual, table of BAUDRATE).
constexpr uint32_t kBaudValue = static_cast<uint32_t>(
    ((static_cast<uint64_t>(board_config::kBaud) << 32) / 16000000 + 0x800) & 0xFFFFF000);

}  // namespace

DriverState DriverInit() {
  Register(kCrystalStarted) = 0;
  // The event has just been cleared: it reads as set in QEMU alone, where every register of the
  // clock reads 1.
  const bool emulated = Register(kCrystalStarted) != 0;
  Register(kCrystalStart) = 1;
  WaitForBits(kCrystalStarted, 1);
  Register(kGpioSet) = 1u << board_config::kTxPin;
  Register(kGpioPinConfig + 4 * board_config::kTxPin) = kGpioOutput;
  Register(kGpioPinConfig + 4 * board_config::kRxPin) = 0;
  Register(kTxPin) = board_config::kTxPin;
  Register(kRxPin) = board_config::kRxPin;
  Register(kBaudRate) = kBaudValue;
  Register(kEnable) = kUartOn;
  Register(kTxReady) = 0;
  Register(kRxReady) = 0;
  Register(kStartTx) = 1;
  Register(kStartRx) = 1;
  g_tx_busy = false;
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

ResetCause DriverResetCause() {
  const uint32_t reason = Register(kResetReason);
  Register(kResetReason) = reason;
  if ((reason & (1u << 2)) != 0) return ResetCause::kSoftware;
  if ((reason & (1u << 1)) != 0) return ResetCause::kWatchdog;
  if ((reason & 1u) != 0) return ResetCause::kPin;
  return reason == 0 ? ResetCause::kPowerOn : ResetCause::kOther;
}

bool DriverUartReady() {
  if (g_tx_busy && Register(kTxReady) != 0) {
    Register(kTxReady) = 0;
    g_tx_busy = false;
  }
  return !g_tx_busy;
}

void DriverUartSend(uint8_t byte) {
  g_tx_busy = true;
  Register(kTxData) = byte;
}

int UartRead() {
  if (Register(kRxReady) == 0) return -1;
  Register(kRxReady) = 0;
  return static_cast<int>(Register(kRxData) & 0xFF);
}

}  // namespace forge
