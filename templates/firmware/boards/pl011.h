// Arm's PrimeCell UART (PL011 TRM, DDI 0183, chapter 3), with its FIFOs on.
#pragma once

#include "board_config.h"
#include "cortex_m.h"

namespace forge {

constexpr uint32_t kUartData = board_config::kUartBase + 0x000;
constexpr uint32_t kUartFlags = board_config::kUartBase + 0x018;
constexpr uint32_t kUartRxEmpty = 1u << 4;
constexpr uint32_t kUartTxFull = 1u << 5;
constexpr uint32_t kUartBaudInteger = board_config::kUartBase + 0x024;
constexpr uint32_t kUartBaudFraction = board_config::kUartBase + 0x028;
constexpr uint32_t kUartLineControl = board_config::kUartBase + 0x02C;
constexpr uint32_t kUart8BitsWithFifo = 0x70;
constexpr uint32_t kUartControl = board_config::kUartBase + 0x030;
constexpr uint32_t kUartTxRx = 0x301;

// The baud rate's divider counts in 64th of 16 clocks.
inline void StartUart(uint32_t uart_hz) {
  const uint32_t divider = (uart_hz * 4 + board_config::kBaud / 2) / board_config::kBaud;
  Register(kUartControl) = 0;
  Register(kUartBaudInteger) = divider >> 6;
  Register(kUartBaudFraction) = divider & 63;
  Register(kUartLineControl) = kUart8BitsWithFifo;
  Register(kUartControl) = kUartTxRx;
}

bool DriverUartReady() { return (Register(kUartFlags) & kUartTxFull) == 0; }

void DriverUartSend(uint8_t byte) { Register(kUartData) = byte; }

int UartRead() {
  if ((Register(kUartFlags) & kUartRxEmpty) != 0) return -1;
  return static_cast<int>(Register(kUartData) & 0xFF);
}

}  // namespace forge
