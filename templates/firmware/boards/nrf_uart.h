// The UART of nRF51 and nRF52, without DMA (nRF51 Series Reference Manual v3.0, chapter UART;
// nRF52840 Product Specification v1.1, section 6.33), the high-frequency clock and the cause of the
// last reset.
#pragma once

#include "board_config.h"
#include "cortex_m.h"

namespace forge {

constexpr uint32_t kCrystalStart = 0x40000000;
constexpr uint32_t kCrystalStarted = 0x40000100;
constexpr uint32_t kResetReason = 0x40000400;

constexpr uint32_t kUart = 0x40002000;
constexpr uint32_t kUartStartRx = kUart + 0x000;
constexpr uint32_t kUartStartTx = kUart + 0x008;
constexpr uint32_t kUartRxReady = kUart + 0x108;
constexpr uint32_t kUartTxReady = kUart + 0x11C;
constexpr uint32_t kUartEnable = kUart + 0x500;
constexpr uint32_t kUartTxPin = kUart + 0x50C;
constexpr uint32_t kUartRxPin = kUart + 0x514;
constexpr uint32_t kUartRxData = kUart + 0x518;
constexpr uint32_t kUartTxData = kUart + 0x51C;
constexpr uint32_t kUartBaudRate = kUart + 0x524;
constexpr uint32_t kUartOn = 4;

constexpr uint32_t kGpio = 0x50000000;
constexpr uint32_t kGpioPortBytes = 0x300;
constexpr uint32_t kGpioSet = 0x508;
constexpr uint32_t kGpioPinConfig = 0x700;
constexpr uint32_t kGpioOutput = 3;
constexpr uint32_t kGpioInputPulledUp = 3u << 2;

// BAUDRATE is the rate in units of 16 MHz / 2^32, of which the upper 20 bits count (reference
// manual, table of BAUDRATE).
constexpr uint32_t kUartBaudValue = static_cast<uint32_t>(
    ((static_cast<uint64_t>(board_config::kBaud) << 32) / 16000000 + 0x800) & 0xFFFFF000);

inline bool g_uart_tx_busy;

// A pin is 32 * port + its number there, as the UART itself counts.
constexpr uint32_t PinConfig(uint32_t pin) {
  return kGpio + kGpioPortBytes * (pin / 32) + kGpioPinConfig + 4 * (pin % 32);
}

inline void StartUart() {
  Register(kGpio + kGpioPortBytes * (board_config::kTxPin / 32) + kGpioSet) =
      1u << board_config::kTxPin % 32;
  Register(PinConfig(board_config::kTxPin)) = kGpioOutput;
  Register(PinConfig(board_config::kRxPin)) = kGpioInputPulledUp;
  Register(kUartTxPin) = board_config::kTxPin;
  Register(kUartRxPin) = board_config::kRxPin;
  Register(kUartBaudRate) = kUartBaudValue;
  Register(kUartEnable) = kUartOn;
  Register(kUartTxReady) = 0;
  Register(kUartRxReady) = 0;
  Register(kUartStartTx) = 1;
  Register(kUartStartRx) = 1;
  g_uart_tx_busy = false;
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
  if (g_uart_tx_busy && Register(kUartTxReady) != 0) {
    Register(kUartTxReady) = 0;
    g_uart_tx_busy = false;
  }
  return !g_uart_tx_busy;
}

void DriverUartSend(uint8_t byte) {
  g_uart_tx_busy = true;
  Register(kUartTxData) = byte;
}

int UartRead() {
  if (Register(kUartRxReady) == 0) return -1;
  Register(kUartRxReady) = 0;
  return static_cast<int>(Register(kUartRxData) & 0xFF);
}

}  // namespace forge
