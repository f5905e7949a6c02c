// RP2040 (data sheet, build of 2024). Its boot ROM copies the first 256 bytes of flash into RAM,
// checks their CRC and runs them; they let flash appear in memory and start the program behind
// them.
#include "board_config.h"
#include "cortex_m.h"
#include "rp2.h"

namespace forge {
namespace {

constexpr Rp2 kChip = {
    /*resets=*/0x4000C000, /*xosc=*/0x40024000,
    /*clocks=*/0x40008000, /*pll=*/0x40028000,
    /*io=*/0x40014000,     /*pads=*/0x4001C000,
    /*io_reset_bit=*/5,    /*pads_reset_bit=*/8,
    /*pll_reset_bit=*/12,  /*ring_hz=*/6000000,
};

constexpr uint32_t kChipReset = 0x40064008;
constexpr uint32_t kHadPowerOn = 1u << 8;
constexpr uint32_t kHadRunPin = 1u << 16;
constexpr uint32_t kHadRestart = 1u << 20;
constexpr uint32_t kWatchdogReason = 0x40058008;

constexpr uint32_t kBootBytes = 256;

struct BootStage {
  uint32_t words[kBootBytes / 4];
};

// The boot ROM's CRC (data sheet, section 2.8.1.3.1): polynomial 0x04C11DB7, highest bit first,
// from all ones.
constexpr uint32_t BootCrc(const BootStage& stage) {
  uint32_t crc = 0xFFFFFFFF;
  for (uint32_t i = 0; i < kBootBytes - 4; ++i) {
    crc ^= (stage.words[i / 4] >> (8 * (i % 4)) & 0xFF) << 24;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ ((crc >> 31) != 0 ? 0x04C11DB7 : 0);
  }
  return crc;
}

// Armv6-M code. It sets the SSI (data sheet, section 4.10.13) to a quarter of the core's clock and
// to one 32-bit frame an access, read with flash command 03h, which every serial flash has and
// which needs no mode of it: 8 bits of command, 24 of address. Then it starts the program from its
// vectors.
constexpr uint32_t kBootCode[] = {
    0x2100480A,  //  ldr r0, ssi             movs r1, #0
    0x22046081,  //  str r1, [r0, #0x08]     movs r2, #4             SSIENR = 0
    0x4A096142,  //  str r2, [r0, #0x14]     ldr r2, frame           BAUDR = 4
    0x60416002,  //  str r2, [r0, #0x00]     str r1, [r0, #0x04]     CTRLR0, CTRLR1 = 0
    0x23F44A08,  //  ldr r2, command         movs r3, #0xF4
    0x210150C2,  //  str r2, [r0, r3]        movs r1, #1             SPI_CTRLR0
    0x48076081,  //  str r1, [r0, #0x08]     ldr r0, image           SSIENR = 1
    0x60084907,  //  ldr r1, vtor            str r0, [r1]
    0xF3816801,  //  ldr r1, [r0, #0]        msr msp, r1
    0x68408808,  //                          ldr r0, [r0, #4]
    0x46C04700,  //  bx r0                   nop
    0x18000000,  //  ssi
    0x001F0300,  //  frame: 32 bits, EEPROM read
    0x03000218,  //  command: 03h, 8 bits of it, 24 of address
    0x10000100,  //  image
    0xE000ED08,  //  vtor
};

constexpr BootStage MakeBootStage() {
  BootStage stage = {};
  uint32_t* word = stage.words;
  for (const uint32_t code : kBootCode) *word++ = code;
  stage.words[kBootBytes / 4 - 1] = BootCrc(stage);
  return stage;
}

__attribute__((used, section(".boot"))) constexpr BootStage kBootStage = MakeBootStage();

}  // namespace

DriverState DriverInit() { return {Rp2Start(kChip), false}; }

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

// What caused the last reset of the whole chip stays there when the core alone is reset.
ResetCause DriverResetCause() {
  if (Register(kWatchdogReason) != 0) return ResetCause::kWatchdog;
  const uint32_t cause = Register(kChipReset);
  if ((cause & kHadRestart) != 0) return ResetCause::kOther;
  if ((cause & kHadRunPin) != 0) return ResetCause::kPin;
  return (cause & kHadPowerOn) != 0 ? ResetCause::kPowerOn : ResetCause::kUnknown;
}

}  // namespace forge
