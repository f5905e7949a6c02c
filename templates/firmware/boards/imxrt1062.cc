// i.MX RT1060 series (IMXRT1060RM) behind a serial flash on FlexSPI. Its boot ROM
// reads from the start of flash how to talk to it, and where the program's vectors are.
#include "board_config.h"
#include "cortex_m.h"

extern "C" {
extern const uint8_t __flash_start[], __flash_image_bytes[];
extern const uint32_t g_vectors[];
}

namespace forge {
namespace {

constexpr uint32_t kCrystalHz = 24000000;

constexpr uint32_t kCcm = 0x400FC000;
constexpr uint32_t kArmDivider = kCcm + 0x10;
constexpr uint32_t kBusDividers = kCcm + 0x14;
constexpr uint32_t kIpgDivider = 3u << 8;
constexpr uint32_t kAhbDivider = 7u << 10;
constexpr uint32_t kFromPeriph2 = 1u << 25;
constexpr uint32_t kPeriph2Divider = 7u << 27;
constexpr uint32_t kBusSources = kCcm + 0x18;
constexpr uint32_t kPeriph2Source = 3u << 12;
constexpr uint32_t kPeriph2FromCrystal = 1u << 12;
constexpr uint32_t kPeriphFromArmPll = 3u << 18;
constexpr uint32_t kSerialClocks1 = kCcm + 0x24;
constexpr uint32_t kUartDivider = 0x3F;
constexpr uint32_t kUartFromCrystal = 1u << 6;
constexpr uint32_t kHandshakes = kCcm + 0x48;
constexpr uint32_t kBusy = 1u << 16 | 1u << 5 | 1u << 3 | 1u << 1;
constexpr uint32_t kGates3 = kCcm + 0x74;
constexpr uint32_t kLpuart6Gate = 3u << 6;
constexpr uint32_t kGates6 = kCcm + 0x80;
constexpr uint32_t kDcdcGate = 3u << 6;

constexpr uint32_t kArmPll = 0x400D8000;
constexpr uint32_t kPllOn = 1u << 13;
constexpr uint32_t kPllPowerDown = 1u << 12;
constexpr uint32_t kPllBypass = 1u << 16;
constexpr uint32_t kPllLock = 1u << 31;

constexpr uint32_t kDcdcStatus = 0x40080000;
constexpr uint32_t kDcdcOk = 1u << 31;
constexpr uint32_t kDcdcTarget = 0x4008000C;
constexpr uint32_t kTargetMask = 0x1F;
constexpr uint32_t kTarget1250Mv =
    (1250 - 800) / 25;  // IMXRT1060CEC, table of operating ranges: above 528 MHz

constexpr uint32_t kIomux = 0x401F8000;
constexpr uint32_t kMuxAdB0_02 = kIomux + 0x0C4;
constexpr uint32_t kMuxAdB0_03 = kIomux + 0x0C8;
constexpr uint32_t kPadAdB0_02 = kIomux + 0x2B4;
constexpr uint32_t kPadAdB0_03 = kIomux + 0x2B8;
constexpr uint32_t kRxSelect = kIomux + 0x550;
constexpr uint32_t kTxSelect = kIomux + 0x554;
constexpr uint32_t kMuxLpuart6 = 2;
constexpr uint32_t kPadFast = 6u << 3 | 2u << 6;  // drive R0/6, 100 MHz
constexpr uint32_t kPadPulledUp =
    kPadFast | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 16;  // 47 kOhm, hysteresis

constexpr uint32_t kLpuart6 = 0x40198000;
constexpr uint32_t kBaudRate = kLpuart6 + 0x10;
constexpr uint32_t kBothEdges = 1u << 17;
constexpr uint32_t kStatus = kLpuart6 + 0x14;
constexpr uint32_t kOverrun = 1u << 19;
constexpr uint32_t kRxFull = 1u << 21;
constexpr uint32_t kTxEmpty = 1u << 23;
constexpr uint32_t kControl = kLpuart6 + 0x18;
constexpr uint32_t kTxRx = 1u << 19 | 1u << 18;
constexpr uint32_t kData = kLpuart6 + 0x1C;
constexpr uint32_t kFifo = kLpuart6 + 0x28;
constexpr uint32_t kFifosOn = 1u << 7 | 1u << 3;

constexpr uint32_t kResetStatus = 0x400F8008;

// What the boot ROM reads: at 0 how to talk to the flash, at 0x1000 the image vector table
// (reference manual, chapter 9).
constexpr uint32_t kConfigWords = 0x200 / 4;
constexpr uint32_t kFlashBytes = 8 * 1024 * 1024;

struct FlashConfig {
  uint32_t words[kConfigWords];
};

// An instruction of FlexSPI's look-up table: what to do, on how many lines, with what
// (chapter 27).
constexpr uint32_t Instruction(uint32_t code, uint32_t lines, uint32_t operand) {
  return code << 10 | (lines == 4 ? 2u : 0u) << 8 | operand;
}

constexpr uint32_t kCommand = 0x01, kAddress = 0x02, kMode8 = 0x07, kRead = 0x09, kDummy = 0x0C;

constexpr FlashConfig MakeFlashConfig() {
  FlashConfig config = {};
  config.words[0x000 / 4] = 0x42464346;  // "FCFB"
  config.words[0x004 / 4] = 0x56010000;  // "V", 1.0.0
  config.words[0x00C / 4] =
      3u << 16 | 3u << 8 | 1;  // chip select's hold and setup; clock from the DQS pad
  config.words[0x044 / 4] = 6u << 16 | 4u << 8 | 1;  // 100 MHz; four lines; serial NOR flash
  config.words[0x050 / 4] = kFlashBytes;
  // Fast Read Quad I/O of the W25Q64JV (data sheet, section 8.2.13): no continuous mode, 4 dummy
  // clocks.
  config.words[0x080 / 4] = Instruction(kCommand, 1, 0xEB) | Instruction(kAddress, 4, 24) << 16;
  config.words[0x084 / 4] = Instruction(kMode8, 4, 0xFF) | Instruction(kDummy, 4, 4) << 16;
  config.words[0x088 / 4] = Instruction(kRead, 4, 4);
  config.words[0x1C0 / 4] = 256;    // bytes of a page
  config.words[0x1C4 / 4] = 4096;   // of a sector
  config.words[0x1C8 / 4] = 1;      // 30 MHz for commands
  config.words[0x1D0 / 4] = 65536;  // bytes of a block
  return config;
}

struct BootData {
  const uint8_t* start;
  const uint8_t* bytes;
  uint32_t plugin;
};

struct ImageVectorTable {
  uint32_t header;
  const uint32_t* entry;
  uint32_t reserved;
  uint32_t device_configuration;
  const BootData* boot_data;
  const ImageVectorTable* self;
  uint32_t command_sequence;
  uint32_t reserved_too;
};

struct BootHeader {
  FlashConfig config;
  uint8_t gap[0x1000 - sizeof(FlashConfig)];
  ImageVectorTable table;
  BootData data;
};

extern const BootHeader kBootHeader;
__attribute__((used, section(".boot"))) const BootHeader kBootHeader = {
    MakeFlashConfig(),
    {},
    {0x402000D1, g_vectors, 0, 0, &kBootHeader.data, &kBootHeader.table, 0, 0},
    {__flash_start, __flash_image_bytes, 0}};
static_assert(sizeof(BootHeader) == 0x102C, "the boot ROM has fixed places");

bool WaitForHandshake() { return WaitForValue(kHandshakes, kBusy, 0); }

// The core runs from the crystal, by way of PERIPH_CLK2, while its PLL is set.
bool RunFromCrystal() {
  SetBits(kBusDividers, kPeriph2Divider, 0);
  SetBits(kBusSources, kPeriph2Source, kPeriph2FromCrystal);
  if (!WaitForHandshake()) return false;
  SetBits(kBusDividers, kFromPeriph2, kFromPeriph2);
  return WaitForHandshake();
}

bool RaiseSupply() {
  SetBits(kGates6, kDcdcGate, kDcdcGate);
  if ((Register(kDcdcTarget) & kTargetMask) >= kTarget1250Mv) return true;
  SetBits(kDcdcTarget, kTargetMask, kTarget1250Mv);
  return WaitForBits(kDcdcStatus, kDcdcOk);
}

// Returns the core's clock: what the board file says, or the crystal's when supply or PLL do not
// come up. The bus of the peripherals runs at a quarter of it.
uint32_t StartClock() {
  const bool supplied = RaiseSupply();
  if (!RunFromCrystal() || !supplied) return kCrystalHz;
  Register(kArmPll) = kPllPowerDown | kPllBypass;
  Register(kArmPll) = kPllOn | kPllBypass | board_config::kPllDivSelect;
  if (!WaitForBits(kArmPll, kPllLock)) return kCrystalHz;
  SetBits(kArmPll, kPllBypass, 0);
  Register(kArmDivider) = board_config::kArmPodf - 1;
  if (!WaitForHandshake()) return kCrystalHz;
  SetBits(kBusDividers, kAhbDivider | kIpgDivider, 3u << 8);
  if (!WaitForHandshake()) return kCrystalHz;
  SetBits(kBusSources, kPeriphFromArmPll, kPeriphFromArmPll);
  SetBits(kBusDividers, kFromPeriph2, 0);
  return WaitForHandshake() ? board_config::kClockHz : kCrystalHz;
}

// Bits of BAUD: the UART takes 4 to 32 samples a bit; those of which a whole number comes nearest
// to the crystal's rate are taken. Below 8 it has to sample at both edges.
constexpr uint32_t BaudBits() {
  uint32_t best = 0, least = UINT32_MAX;
  for (uint32_t samples = 32; samples >= 4; --samples) {
    const uint32_t divider =
        (kCrystalHz + board_config::kBaud * samples / 2) / (board_config::kBaud * samples);
    if (divider == 0 || divider > 0x1FFF) continue;
    const uint32_t rate = kCrystalHz / (divider * samples);
    const uint32_t error =
        rate > board_config::kBaud ? rate - board_config::kBaud : board_config::kBaud - rate;
    if (error >= least) continue;
    least = error;
    best = (samples - 1) << 24 | divider | (samples < 8 ? kBothEdges : 0);
  }
  return best;
}

void StartUart() {
  SetBits(kSerialClocks1, kUartDivider | kUartFromCrystal, kUartFromCrystal);
  SetBits(kGates3, kLpuart6Gate, kLpuart6Gate);
  Register(kMuxAdB0_02) = kMuxLpuart6;
  Register(kMuxAdB0_03) = kMuxLpuart6;
  Register(kPadAdB0_02) = kPadFast;
  Register(kPadAdB0_03) = kPadPulledUp;
  Register(kTxSelect) = 1;
  Register(kRxSelect) = 1;
  Register(kControl) = 0;
  constexpr uint32_t kBits = BaudBits();
  static_assert(kBits != 0, "no divider makes this baud rate of 24 MHz");
  Register(kBaudRate) = kBits;
  Register(kFifo) = kFifosOn;
  Register(kControl) = kTxRx;
}

}  // namespace

DriverState DriverInit() {
  EnableCaches();
  const uint32_t core_hz = StartClock();
  StartUart();
  return {core_hz, false};
}

uint32_t DriverTimerStart() { return 0; }
uint64_t DriverTimerRead() { return 0; }

// SRC_SRSR (reference manual, chapter 21); a bit is cleared by writing it.
ResetCause DriverResetCause() {
  const uint32_t status = Register(kResetStatus);
  Register(kResetStatus) = status;
  if ((status & (1u << 1)) != 0) return ResetCause::kSoftware;
  if ((status & (1u << 4 | 1u << 7)) != 0) return ResetCause::kWatchdog;
  if ((status & (1u << 3)) != 0) return ResetCause::kPin;
  if ((status & 1u) != 0) return ResetCause::kPowerOn;
  return status == 0 ? ResetCause::kUnknown : ResetCause::kOther;
}

bool DriverUartReady() { return (Register(kStatus) & kTxEmpty) != 0; }

void DriverUartSend(uint8_t byte) { Register(kData) = byte; }

// After an overrun nothing is received until it has been acknowledged.
int UartRead() {
  const uint32_t status = Register(kStatus);
  if ((status & kOverrun) != 0) Register(kStatus) = kOverrun;
  if ((status & kRxFull) == 0) return -1;
  return static_cast<int>(Register(kData) & 0xFF);
}

}  // namespace forge
