#include "cortex_m.h"

#include "board.h"

namespace forge {
namespace {

// Armv7-M Architecture Reference Manual, sections B3.2 (system control), B3.3 (SysTick) and C1.8
// (DWT).
constexpr uint32_t kSysTickControl = 0xE000E010;
constexpr uint32_t kSysTickReload = 0xE000E014;
constexpr uint32_t kSysTickValue = 0xE000E018;
constexpr uint32_t kInterruptControl = 0xE000ED04;
constexpr uint32_t kSysTickPending = 1u << 26;
constexpr uint32_t kResetControl = 0xE000ED0C;
constexpr uint32_t kResetRequest = 0x05FA0004;
constexpr uint32_t kDebugControl = 0xE000EDFC;
constexpr uint32_t kTraceEnable = 1u << 24;
constexpr uint32_t kDwtControl = 0xE0001000;
constexpr uint32_t kDwtCycles = 0xE0001004;
constexpr uint32_t kDwtUnlock = 0xE0001FB0;  // DWT_LAR: a Cortex-M7 wants it, the others ignore it
constexpr uint32_t kUnlockKey = 0xC5ACCE55;

// Caches: Armv7-M Architecture Reference Manual, sections B2.2.7, B3.2 and B4.8.
constexpr uint32_t kConfigControl = 0xE000ED14;
constexpr uint32_t kDataCacheOn = 1u << 16;
constexpr uint32_t kInstructionCacheOn = 1u << 17;
constexpr uint32_t kCacheSize = 0xE000ED80;
constexpr uint32_t kCacheSelect = 0xE000ED84;
constexpr uint32_t kInvalidateInstructions = 0xE000EF50;
constexpr uint32_t kInvalidateDataSet = 0xE000EF60;
constexpr uint32_t kCleanDataAddress = 0xE000EF68;

constexpr uint32_t kSysTickMask = 0xFFFFFF;
constexpr uint32_t kUartReads = 20000000;

// Semihosting for AArch32 and AArch64: SYS_EXIT_EXTENDED.
constexpr uint32_t kSemihostingExit = 0x20;
constexpr uint32_t kApplicationExit = 0x20026;

constexpr uint64_t kSoftwareReset =
    0x666F726765527374;  // marks a reset that the firmware asked for

enum class Source : uint8_t { kSysTick, kCycleCounter, kDriverTimer };

Source g_source;
bool g_emulated;
bool g_data_cached;
ResetCause g_reset_cause;
uint32_t g_core_hz;
uint32_t g_ticks_per_second;
volatile uint32_t g_wraps;
volatile uint32_t g_last_cycles;
__attribute__((section(".noinit"))) volatile uint64_t g_reset_mark;

class InterruptsOff {
 public:
  InterruptsOff() { asm volatile("mrs %0, primask\n cpsid i" : "=r"(primask_)::"memory"); }
  ~InterruptsOff() { asm volatile("msr primask, %0" ::"r"(primask_) : "memory"); }

 private:
  uint32_t primask_;
};

bool CycleCounterRuns() {
#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
  return false;
#else
  Register(kDebugControl) = Register(kDebugControl) | kTraceEnable;
  Register(kDwtUnlock) = kUnlockKey;
  Register(kDwtCycles) = 0;
  Register(kDwtControl) = Register(kDwtControl) | 1;
  for (int i = 0; i < 16; ++i) {
    if (Register(kDwtCycles) != 0) return true;
  }
  return false;
#endif
}

// A set and way of DCISW: the ways fill the upper bits, the sets stand above the 32 bytes of a
// line.
void InvalidateDataCache() {
  Register(kCacheSelect) = 0;
  asm volatile("dsb" ::: "memory");
  const uint32_t size = Register(kCacheSize);
  const uint32_t sets = (size >> 13 & 0x7FFF) + 1;
  const uint32_t ways = (size >> 3 & 0x3FF) + 1;
  const uint32_t way_shift = ways > 1 ? __builtin_clz(ways - 1) : 0;
  for (uint32_t set = 0; set < sets; ++set) {
    for (uint32_t way = 0; way < ways; ++way) {
      Register(kInvalidateDataSet) = way << way_shift | set << 5;
    }
  }
  asm volatile("dsb\n isb" ::: "memory");
}

// Long enough for what the UART still holds, were it 16 bytes at 115200 baud.
void LetUartFinish() {
  for (uint32_t i = 0; i < g_core_hz / 2000; ++i) asm volatile("nop");
}

uint64_t ReadCycles() {
  const uint32_t now = Register(kDwtCycles);
  if (now < g_last_cycles) g_wraps = g_wraps + 1;
  g_last_cycles = now;
  return (static_cast<uint64_t>(g_wraps) << 32) | now;
}

uint64_t ReadSysTick() {
  uint32_t wraps = g_wraps;
  uint32_t value = Register(kSysTickValue);
  if ((Register(kInterruptControl) & kSysTickPending) != 0) {
    value = Register(kSysTickValue);
    wraps += 1;
  }
  // It counts down and asks for its interrupt on reaching 0.
  return (static_cast<uint64_t>(wraps) << 24) + ((0u - value) & kSysTickMask);
}

}  // namespace

void EnableCaches() {
  Register(kInvalidateInstructions) = 0;
  asm volatile("dsb\n isb" ::: "memory");
  if ((Register(kConfigControl) & kDataCacheOn) == 0) InvalidateDataCache();
  Register(kConfigControl) = Register(kConfigControl) | kInstructionCacheOn | kDataCacheOn;
  asm volatile("dsb\n isb" ::: "memory");
  g_data_cached = true;
}

void BoardInit() {
  const bool asked_for = g_reset_mark == kSoftwareReset;
  g_reset_mark = 0;
  g_reset_cause = asked_for ? ResetCause::kSoftware : DriverResetCause();
  const DriverState state = DriverInit();
  const bool counts = CycleCounterRuns();
#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
  g_emulated = state.emulated;
#else
  g_emulated = !counts;  // QEMU reads the cycle counter as 0
#endif
  g_core_hz = state.core_hz;
  g_ticks_per_second = state.core_hz;
  g_source = counts ? Source::kCycleCounter : Source::kSysTick;
  if (!counts) {
    const uint32_t timer_hz = DriverTimerStart();
    if (timer_hz != 0) {
      g_ticks_per_second = timer_hz;
      g_source = Source::kDriverTimer;
      return;
    }
  }
  Register(kSysTickReload) = kSysTickMask;
  Register(kSysTickValue) = 0;
  Register(kSysTickControl) = 7;  // on, with interrupt, from the core's clock
}

uint64_t BoardTicks() {
  if (g_source == Source::kDriverTimer) return DriverTimerRead();
  const InterruptsOff off;
  return g_source == Source::kCycleCounter ? ReadCycles() : ReadSysTick();
}

uint32_t BoardTicksPerSecond() { return g_ticks_per_second; }

CounterKind BoardCounterKind() {
  return g_emulated ? CounterKind::kEmulatedTicks : CounterKind::kCycles;
}

uint8_t BoardResetCause() { return static_cast<uint8_t>(g_reset_cause); }

void UartWrite(const uint8_t* data, size_t size) {
  static uint32_t reads = kUartReads;
  for (size_t i = 0; i < size; ++i) {
    uint32_t left = reads;
    while (!DriverUartReady() && left > 0) --left;
    // A UART that has been stuck once is not waited for again until it moves.
    reads = left > 0 ? kUartReads : 1;
    if (left > 0) DriverUartSend(data[i]);
  }
}

void BoardReset() {
  LetUartFinish();
  g_reset_mark = kSoftwareReset;
  asm volatile("dsb" ::: "memory");
  if (g_data_cached) {
    // The cache is lost at the reset, and with it what it has not written back.
    Register(kCleanDataAddress) = reinterpret_cast<uint32_t>(&g_reset_mark);
    asm volatile("dsb" ::: "memory");
  }
  Register(kResetControl) = kResetRequest;
  for (;;) asm volatile("dsb");
}

void BoardExit(int status) {
  LetUartFinish();
  if (g_emulated) {
    const uint32_t block[2] = {kApplicationExit, static_cast<uint32_t>(status)};
    asm volatile(
        "mov r0, %0\n"
        "mov r1, %1\n"
        "bkpt 0xAB\n" ::"r"(kSemihostingExit),
        "r"(block)
        : "r0", "r1", "memory");
  }
  for (;;) asm volatile("wfi");
}

}  // namespace forge

extern "C" void SysTick_Handler() {
  if (forge::g_source == forge::Source::kCycleCounter) {
    forge::ReadCycles();
  } else {
    forge::g_wraps = forge::g_wraps + 1;
  }
}
