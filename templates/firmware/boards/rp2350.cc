// RP2350 with its Arm cores (data sheet, build of 2024). Its boot ROM looks for a block in the
// first 4 KB of flash that says what the image is; it starts one without an entry point from the
// vectors at the start of flash.
#include "board_config.h"
#include "cortex_m.h"
#include "rp2.h"

namespace forge {
namespace {

constexpr Rp2 kChip = {
    /*resets=*/0x40020000, /*xosc=*/0x40048000,
    /*clocks=*/0x40010000, /*pll=*/0x40050000,
    /*io=*/0x40028000,     /*pads=*/0x40038000,
    /*io_reset_bit=*/6,    /*pads_reset_bit=*/9,
    /*pll_reset_bit=*/14,  /*ring_hz=*/11000000,
};

constexpr uint32_t kChipReset = 0x4010002C;
constexpr uint32_t kHadPowerOn = 1u << 16 | 1u << 17;
constexpr uint32_t kHadRunPin = 1u << 18;
constexpr uint32_t kHadWatchdog = 1u << 22 | 1u << 23 | 1u << 24 | 1u << 28;
constexpr uint32_t kHadSystemRequest = 1u << 27;

// IMAGE_DEF (data sheet, section 5.9): an item of one word that says executable, secure, Arm,
// RP2350; the end with the number of words before it; a link to itself, as it is the only block.
constexpr uint32_t kBlockStart = 0xFFFFDED3;
constexpr uint32_t kBlockEnd = 0xAB123579;
constexpr uint32_t kItemImageType = 0x42 | 1u << 8;
constexpr uint32_t kExecutable = 1;
constexpr uint32_t kSecure = 2u << 4;
constexpr uint32_t kForRp2350 = 1u << 12;
constexpr uint32_t kItemLast = 0xFF | 1u << 8;

__attribute__((used, section(".boot_after_vectors"))) constexpr uint32_t kImageDefinition[] = {
    kBlockStart, kItemImageType | (kExecutable | kSecure | kForRp2350) << 16, kItemLast, 0,
    kBlockEnd};

}  // namespace

DriverState DriverInit() { return {Rp2Start(kChip), false}; }

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

ResetCause DriverResetCause() {
  const uint32_t cause = Register(kChipReset);
  if ((cause & kHadSystemRequest) != 0) return ResetCause::kSoftware;
  if ((cause & kHadWatchdog) != 0) return ResetCause::kWatchdog;
  if ((cause & kHadRunPin) != 0) return ResetCause::kPin;
  if ((cause & kHadPowerOn) != 0) return ResetCause::kPowerOn;
  return cause == 0 ? ResetCause::kUnknown : ResetCause::kOther;
}

}  // namespace forge
