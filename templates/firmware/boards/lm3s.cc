// Stellaris LM3S6965 (data sheet). UART0, a PL011, on PA0 (RX) and PA1 (TX). 50 MHz from
// the PLL.
#include "board_config.h"
#include "cortex_m.h"
#include "pl011.h"

namespace forge {
namespace {

constexpr uint32_t kCrystalHz = 8000000;

constexpr uint32_t kSystem = 0x400FE000;
constexpr uint32_t kRawInterrupts = kSystem + 0x050;
constexpr uint32_t kPllLocked = 1u << 6;
constexpr uint32_t kResetStatus = kSystem + 0x05C;
constexpr uint32_t kClockConfig = kSystem + 0x060;
constexpr uint32_t kUartGate = kSystem + 0x104;
constexpr uint32_t kGpioGate = kSystem + 0x108;

// Main oscillator, 8 MHz crystal; the PLL's 200 MHz divided by 4.
constexpr uint32_t kCrystal8Mhz = 0xEu << 6;
constexpr uint32_t kBypassPll = 1u << 11;
constexpr uint32_t kPllOff = 1u << 13;
constexpr uint32_t kDivideBy4 = 1u << 22 | 3u << 23;

constexpr uint32_t kGpioA = 0x40004000;
constexpr uint32_t kAlternate = kGpioA + 0x420;
constexpr uint32_t kDigital = kGpioA + 0x51C;

// Returns the core's clock: what the board file says, or the crystal's when the PLL does not lock.
uint32_t StartClock() {
  Register(kClockConfig) = kCrystal8Mhz | kBypassPll | kPllOff;
  Register(kClockConfig) = kCrystal8Mhz | kBypassPll | kDivideBy4;
  if (!WaitForBits(kRawInterrupts, kPllLocked)) {
    Register(kClockConfig) = kCrystal8Mhz | kBypassPll | kPllOff;
    return kCrystalHz;
  }
  Register(kClockConfig) = kCrystal8Mhz | kDivideBy4;
  return board_config::kClockHz;
}

}  // namespace

DriverState DriverInit() {
  const uint32_t core_hz = StartClock();
  Register(kUartGate) = Register(kUartGate) | 1;
  Register(kGpioGate) = Register(kGpioGate) | 1;
  // The data sheet wants three clocks before the gated units are used; this read takes them.
  [[maybe_unused]] const uint32_t settled = Register(kGpioGate);
  Register(kAlternate) = Register(kAlternate) | 3;
  Register(kDigital) = Register(kDigital) | 3;
  StartUart(core_hz);
  return {core_hz, false};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

ResetCause DriverResetCause() {
  const uint32_t status = Register(kResetStatus);
  Register(kResetStatus) = 0;
  if ((status & (1u << 4)) != 0) return ResetCause::kSoftware;
  if ((status & (1u << 3)) != 0) return ResetCause::kWatchdog;
  if ((status & (1u << 1 | 1u << 2)) != 0) return ResetCause::kPowerOn;
  if ((status & 1u) != 0) return ResetCause::kPin;
  return ResetCause::kUnknown;
}

}  // namespace forge
