// The USART of STM32F7, L4, H7 and U5 (RM0385 section 31.8, RM0351 section 40.8): a data register
// for each way. The low-power UART has the same registers, and another baud rate (RM0432 section
// 51).
#pragma once

#include "board_config.h"
#include "cortex_m.h"

namespace forge {

constexpr uint32_t kUartControl1 = board_config::kUartBase + 0x00;
constexpr uint32_t kUartControl3 = board_config::kUartBase + 0x08;
constexpr uint32_t kUartNoOverrun = 1u << 12;
constexpr uint32_t kUartBaudRate = board_config::kUartBase + 0x0C;
constexpr uint32_t kUartStatus = board_config::kUartBase + 0x1C;
constexpr uint32_t kUartRxNotEmpty = 1u << 5;
constexpr uint32_t kUartTxEmpty = 1u << 7;
constexpr uint32_t kUartRxData = board_config::kUartBase + 0x24;
constexpr uint32_t kUartTxData = board_config::kUartBase + 0x28;
constexpr uint32_t kUartTxRx = 1u << 3 | 1u << 2;
constexpr uint32_t kUartOn = 1;
constexpr uint32_t kUartFifoOn = 1u << 29;

// The divider of a low-power UART counts in 256th of its clock.
inline void StartUart(uint32_t uart_hz, bool low_power, bool has_fifo) {
  const uint64_t scaled_hz = low_power ? uint64_t{uart_hz} * 256 : uart_hz;
  Register(kUartControl1) = 0;
  Register(kUartControl3) = kUartNoOverrun;
  Register(kUartBaudRate) =
      static_cast<uint32_t>((scaled_hz + board_config::kBaud / 2) / board_config::kBaud);
  const uint32_t control = kUartTxRx | (has_fifo ? kUartFifoOn : 0);
  Register(kUartControl1) = control;
  Register(kUartControl1) = control | kUartOn;
}

bool DriverUartReady() { return (Register(kUartStatus) & kUartTxEmpty) != 0; }

void DriverUartSend(uint8_t byte) { Register(kUartTxData) = byte; }

int UartRead() {
  if ((Register(kUartStatus) & kUartRxNotEmpty) == 0) return -1;
  return static_cast<int>(Register(kUartRxData) & 0xFF);
}

}  // namespace forge
