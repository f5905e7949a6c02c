// Clocks, resets and pins of RP2040 (data sheet, sections 2.14 to 2.19) and RP2350 (data sheet,
// sections 7.5, 8.1, 8.2, 8.6 and 9): the same units at other addresses.
#pragma once

#include "board_config.h"
#include "pl011.h"

namespace forge {

// Where a chip has its units, and what differs between the two.
struct Rp2 {
  uint32_t resets, xosc, clocks, pll, io, pads;
  uint32_t io_reset_bit, pads_reset_bit, pll_reset_bit;
  uint32_t ring_hz;  // of the ring oscillator that the boot ROM leaves, about
};

constexpr uint32_t kRp2Clear = 0x3000;  // the alias of a register that clears the bits written
constexpr uint32_t kRp2Set = 0x2000;
constexpr uint32_t kRp2ResetDone = 0x08;

constexpr uint32_t kXoscControl = 0x00;
constexpr uint32_t kXoscOn1To15Mhz = 0xFABAA0;
constexpr uint32_t kXoscStatus = 0x04;
constexpr uint32_t kXoscStable = 1u << 31;
constexpr uint32_t kXoscStartup = 0x0C;

constexpr uint32_t kRefControl = 0x30;
constexpr uint32_t kRefFromXosc = 2;
constexpr uint32_t kRefSelected = 0x38;
constexpr uint32_t kSysControl = 0x3C;
constexpr uint32_t kSysFromPll = 1;  // the auxiliary source, which is PLL_SYS at 0
constexpr uint32_t kSysSelected = 0x44;
constexpr uint32_t kPeriControl = 0x48;
constexpr uint32_t kPeriFromSys = 1u << 11;

constexpr uint32_t kPllControl = 0x00;
constexpr uint32_t kPllLock = 1u << 31;
constexpr uint32_t kPllPower = 0x04;
constexpr uint32_t kPllMainOff = 1u << 0 | 1u << 5;
constexpr uint32_t kPllPostOff = 1u << 3;
constexpr uint32_t kPllFeedback = 0x08;
constexpr uint32_t kPllPost = 0x0C;

constexpr uint32_t kPadTx = 1u << 6 | 1u << 4 | 1u << 1;  // input on, 4 mA, Schmitt trigger
constexpr uint32_t kPadRx = kPadTx | 1u << 3;             // and a pull-up
constexpr uint32_t kFunctionUart = 2;

// Takes units out of reset.
inline bool Rp2Release(const Rp2& chip, uint32_t mask) {
  Register(chip.resets + kRp2Clear) = mask;
  return WaitForValue(chip.resets + kRp2ResetDone, mask, mask);
}

inline bool Rp2StartPll(const Rp2& chip) {
  Register(chip.resets + kRp2Set) = 1u << chip.pll_reset_bit;
  if (!Rp2Release(chip, 1u << chip.pll_reset_bit)) return false;
  Register(chip.pll + kPllControl) = board_config::kPllRefdiv;
  Register(chip.pll + kPllFeedback) = board_config::kPllFbdiv;
  Register(chip.pll + kRp2Clear + kPllPower) = kPllMainOff;
  if (!WaitForBits(chip.pll + kPllControl, kPllLock)) return false;
  Register(chip.pll + kPllPost) = board_config::kPllPostdiv1 << 16 | board_config::kPllPostdiv2
                                                                         << 12;
  Register(chip.pll + kRp2Clear + kPllPower) = kPllPostOff;
  return true;
}

// Returns the core's clock: what the board file says, the crystal's when the PLL does not lock, or
// about that of the ring oscillator.
inline uint32_t Rp2StartClock(const Rp2& chip) {
  Register(chip.clocks + kRp2Clear + kSysControl) = kSysFromPll;
  if (!WaitForBits(chip.clocks + kSysSelected, 1)) return chip.ring_hz;
  // The crystal gets 1 ms, counted in 256th (RP2040 data sheet, section 2.16.3).
  Register(chip.xosc + kXoscStartup) = (board_config::kXoscHz / 1000 + 128) / 256;
  Register(chip.xosc + kXoscControl) = kXoscOn1To15Mhz;
  if (!WaitForBits(chip.xosc + kXoscStatus, kXoscStable)) return chip.ring_hz;
  Register(chip.clocks + kRefControl) = kRefFromXosc;
  if (!WaitForBits(chip.clocks + kRefSelected, 1u << kRefFromXosc)) return chip.ring_hz;
  if (!Rp2StartPll(chip)) return board_config::kXoscHz;
  Register(chip.clocks + kSysControl) = 0;
  Register(chip.clocks + kSysControl) = kSysFromPll;
  return WaitForBits(chip.clocks + kSysSelected, 1u << kSysFromPll) ? board_config::kClockHz
                                                                    : board_config::kXoscHz;
}

inline void Rp2ConnectPin(const Rp2& chip, uint32_t pin, uint32_t pad) {
  Register(chip.io + 8 * pin + 4) = kFunctionUart;
  Register(chip.pads + 4 + 4 * pin) = pad;
}

// Starts clocks and UART; returns the core's clock.
inline uint32_t Rp2Start(const Rp2& chip) {
  const uint32_t core_hz = Rp2StartClock(chip);
  Register(chip.clocks + kPeriControl) = kPeriFromSys;
  Register(chip.resets + kRp2Set) = 1u << board_config::kUartResetBit;
  Rp2Release(chip, 1u << chip.io_reset_bit | 1u << chip.pads_reset_bit |
                       1u << board_config::kUartResetBit);
  StartUart(core_hz);
  Rp2ConnectPin(chip, board_config::kTxPin, kPadTx);
  Rp2ConnectPin(chip, board_config::kRxPin, kPadRx);
  return core_hz;
}

}  // namespace forge
