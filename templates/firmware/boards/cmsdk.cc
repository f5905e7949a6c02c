// Arm MPS2 and MPS3 FPGA images: UART of the Cortex-M System Design Kit (DDI 0479).
#include "board_config.h"
#include "cortex_m.h"

namespace forge {
namespace {

constexpr uint32_t kData = board_config::kUartBase + 0x00;
constexpr uint32_t kState = board_config::kUartBase + 0x04;
constexpr uint32_t kControl = board_config::kUartBase + 0x08;
constexpr uint32_t kBaudDivider = board_config::kUartBase + 0x10;
constexpr uint32_t kTxFull = 1;
constexpr uint32_t kRxFull = 2;
constexpr uint32_t kTxAndRx = 3;

}  // namespace

DriverState DriverInit() {
  Register(kBaudDivider) = board_config::kUartHz / board_config::kBaud;
  Register(kControl) = kTxAndRx;
  return {board_config::kClockHz, false};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

// The images tell no cause.
ResetCause DriverResetCause() { return ResetCause::kUnknown; }

bool DriverUartReady() { return (Register(kState) & kTxFull) == 0; }

void DriverUartSend(uint8_t byte) { Register(kData) = byte; }

int UartRead() {
  if ((Register(kState) & kRxFull) == 0) return -1;
  return static_cast<int>(Register(kData) & 0xFF);
}

}  // namespace forge
