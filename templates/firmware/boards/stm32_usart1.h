// The USART of STM32F1 and F4 (RM0090 section 30.6): one data register for both ways.
#pragma once

#include "board_config.h"
#include "cortex_m.h"

namespace forge {

constexpr uint32_t kUartStatus = board_config::kUartBase + 0x00;
constexpr uint32_t kUartRxNotEmpty = 1u << 5;
constexpr uint32_t kUartTxEmpty = 1u << 7;
constexpr uint32_t kUartData = board_config::kUartBase + 0x04;
constexpr uint32_t kUartBaudRate = board_config::kUartBase + 0x08;
constexpr uint32_t kUartControl1 = board_config::kUartBase + 0x0C;
constexpr uint32_t kUartTxRx = 1u << 13 | 1u << 3 | 1u << 2;

inline void StartUart(uint32_t uart_hz) {
  Register(kUartBaudRate) = (uart_hz + board_config::kBaud / 2) / board_config::kBaud;
  Register(kUartControl1) = kUartTxRx;
}

bool DriverUartReady() { return (Register(kUartStatus) & kUartTxEmpty) != 0; }

void DriverUartSend(uint8_t byte) { Register(kUartData) = byte; }

int UartRead() {
  if ((Register(kUartStatus) & kUartRxNotEmpty) == 0) return -1;
  return static_cast<int>(Register(kUartData) & 0xFF);
}

}  // namespace forge
