// nRF52833 and nRF52840 (Product Specifications v1.6 and v1.1). The core always runs at 64 MHz; the
// crystal only makes it exact. The instruction cache is on.
#include "board_config.h"
#include "cortex_m.h"
#include "nrf_uart.h"

namespace forge {
namespace {

constexpr uint32_t kCacheConfig = 0x4001E540;
// Chips made from 2021 on close their debug port at every reset, unless the tool that flashed them
// and the firmware both want it open (Product Specification v1.7, section 4.8: Access port
// protection).
constexpr uint32_t kWantedOpen = 0x10001208;
constexpr uint32_t kOpenDebugPort = 0x40000558;
constexpr uint32_t kOpen = 0x5A;
constexpr uint32_t kStopUart = 0x40002000 + 0x004;

}  // namespace

DriverState DriverInit() {
  if (Register(kWantedOpen) == kOpen) Register(kOpenDebugPort) = kOpen;
  Register(kCrystalStarted) = 0;
  Register(kCrystalStart) = 1;
  WaitForBits(kCrystalStarted, 1);
  Register(kCacheConfig) = 1;
  // A bootloader may have left the unit to the UART with DMA, which shares its registers.
  Register(kStopUart) = 1;
  Register(kUartEnable) = 0;
  StartUart();
  return {board_config::kClockHz, false};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

}  // namespace forge
