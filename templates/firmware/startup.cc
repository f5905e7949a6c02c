// Vectors, reset and faults of every Cortex-M. C++ objects do not exist yet in ResetEntry; the
// stack may not be usable in a fault handler until it has been reset.
#include <cstdint>

#include "board.h"
#include "cortex_m.h"
#include "forge_status.h"

extern "C" {

extern uint32_t __stack_bottom[], __stack_top[];
extern uint32_t __data_start[], __data_end[], __bss_start[], __bss_end[];
extern const uint32_t __data_load[];
extern const uint8_t __text_start[], __text_end[];
using Initializer = void (*)();
extern const Initializer __preinit_array_start[], __preinit_array_end[];
extern const Initializer __init_array_start[], __init_array_end[];

int main();
void SysTick_Handler();
[[noreturn]] void Reset_Handler();
[[noreturn]] void FaultHandler();
[[noreturn, gnu::used]] void ResetEntry();
[[gnu::used]] const forge::FaultRecord* FaultEntry(const uint32_t* frame,
                                                   uint32_t exception_return);

// Static objects are never destroyed.
void* __dso_handle = nullptr;
int __aeabi_atexit(void*, void (*)(void*), void*) { return 0; }
int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }
}

namespace forge {
namespace {

#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
constexpr bool kMainline = false;
#else
constexpr bool kMainline = true;
#endif

// Armv7-M Architecture Reference Manual, section B3.2.
constexpr uint32_t kSysTickControl = 0xE000E010;
constexpr uint32_t kVectorTable = 0xE000ED08;
constexpr uint32_t kCfsr = 0xE000ED28;
constexpr uint32_t kHfsr = 0xE000ED2C;
constexpr uint32_t kMmfar = 0xE000ED34;
constexpr uint32_t kBfar = 0xE000ED38;
constexpr uint32_t kCoprocessorAccess = 0xE000ED88;
constexpr uint32_t kMpuType = 0xE000ED90;
constexpr uint32_t kMpuControl = 0xE000ED94;
constexpr uint32_t kMpuBase = 0xE000ED9C;
constexpr uint32_t kMpuAttributes = 0xE000EDA0;
constexpr uint32_t kFloatContext = 0xE000EF34;
constexpr uint32_t kLazySaveActive = 1;
constexpr uint32_t kInterruptDisable = 0xE000E180;
constexpr uint32_t kInterruptForget = 0xE000E280;
constexpr int kInterruptWords = 8;

// CFSR bits that say that the frame is not on the stack: MSTKERR, STKERR and, on Armv8-M, STKOF.
constexpr uint32_t kFrameLost = 1u << 4 | 1u << 12 | 1u << 20;
constexpr uint32_t kStackOverflow = 1u << 20;

// One MPU region, 1 KB in size, that nobody may access: chips have their option bytes just below
// that.
constexpr uint32_t kGuardBytes = 1u << 10;
constexpr uint32_t kGuardAttributes = 1u << 28 | 9u << 1 | 1;
constexpr uint32_t kMpuRegionValid = 1u << 4;
constexpr uint32_t kMpuOnWithDefaultMap = 5;

constexpr uint32_t kPaint = 0xF02CEDA7;
constexpr uint32_t kCanaryWords = 4;
constexpr uint32_t kFrameWords = 8;

__attribute__((section(".noinit"))) FaultRecord g_fault_record;

// Returns the first word from the end of the stack upwards that looks like a return address.
uint32_t NearestReturnAddress(const uint32_t* from) {
  for (const uint32_t* word = from; word < __stack_top; ++word) {
    const auto* address = reinterpret_cast<const uint8_t*>(*word & ~1u);
    if ((*word & 1) != 0 && address > __text_start && address < __text_end) return *word & ~1u;
  }
  return 0;
}

// Below the stack lies the start of RAM, and on most chips nothing. Where something does, a store
// there must fault too.
void GuardStack() {
#if defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__)
  if (Register(kMpuType) == 0) return;
  const uint32_t below = reinterpret_cast<uint32_t>(__stack_bottom) - kGuardBytes;
  Register(kMpuBase) = (below & ~(kGuardBytes - 1)) | kMpuRegionValid;
  Register(kMpuAttributes) = kGuardAttributes;
  Register(kMpuControl) = kMpuOnWithDefaultMap;
  asm volatile("dsb\n isb" ::: "memory");
#endif
}

}  // namespace

uint32_t StackSize() {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__stack_top) -
                               reinterpret_cast<uintptr_t>(__stack_bottom));
}

uint32_t StackHighWater() {
  const uint32_t* word = __stack_bottom;
  while (word < __stack_top && *word == kPaint) ++word;
  return static_cast<uint32_t>(__stack_top - word) * sizeof(uint32_t);
}

bool StackCanaryIntact() {
  for (uint32_t i = 0; i < kCanaryWords; ++i) {
    if (__stack_bottom[i] != kPaint) return false;
  }
  return true;
}

}  // namespace forge

// Only SysTick is ever enabled, and external interrupts have no vectors.
struct VectorTable {
  const uint32_t* stack;
  void (*handlers[15])();
};

extern "C" __attribute__((used, section(".isr_vector"))) const VectorTable g_vectors = {
    __stack_top,
    {Reset_Handler, FaultHandler, FaultHandler, FaultHandler, FaultHandler, FaultHandler,
     FaultHandler, FaultHandler, FaultHandler, FaultHandler, FaultHandler, FaultHandler,
     FaultHandler, FaultHandler, SysTick_Handler}};

// A debugger's load starts here with any stack pointer.
__attribute__((naked)) void Reset_Handler() {
  asm volatile(
      "cpsid i\n"
      "ldr r0, =__stack_top\n"
      "msr msp, r0\n"
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
      "ldr r1, =__stack_bottom\n"
      "msr msplim, r1\n"
#endif
      "movs r2, #0\n"
      "msr control, r2\n"
      "isb\n"
      "bl ResetEntry\n");
}

void ResetEntry() {
  using forge::Register;
  // A bootloader or a debugger may have left interrupts on.
  Register(forge::kSysTickControl) = 0;
  for (int i = 0; i < forge::kInterruptWords; ++i) {
    Register(forge::kInterruptDisable + 4 * i) = 0xFFFFFFFF;
    Register(forge::kInterruptForget + 4 * i) = 0xFFFFFFFF;
  }
  // A Cortex-M0 has no such register, and ignores it (Armv6-M ARM, section B3.2.5).
  Register(forge::kVectorTable) = reinterpret_cast<uint32_t>(&g_vectors);
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  Register(forge::kCoprocessorAccess) = Register(forge::kCoprocessorAccess) | 0xFu << 20;
  asm volatile("dsb\n isb" ::: "memory");
#endif
  const uint32_t* from = __data_load;
  for (uint32_t* to = __data_start; to < __data_end;) *to++ = *from++;
  for (volatile uint32_t* to = __bss_start; to < __bss_end;) *to++ = 0;
  const uint32_t* stack_pointer;
  asm volatile("mov %0, sp" : "=r"(stack_pointer));
  for (volatile uint32_t* to = __stack_bottom; to < stack_pointer - 8;) *to++ = forge::kPaint;
  forge::GuardStack();
  asm volatile("cpsie i" ::: "memory");
  for (const Initializer* run = __preinit_array_start; run < __preinit_array_end;) (*run++)();
  for (const Initializer* run = __init_array_start; run < __init_array_end;) (*run++)();
  main();
  for (;;) asm volatile("wfi");
}

// Takes every fault and every exception nobody handles. The program never goes on: when less than
// half of its stack is left, or the stack pointer is lost, the stack is used again from its top.
// What comes of it runs as the program did, by a return to a frame made here, so that a fault in it
// is a fault again and not a lockup. A fault in a handler stays where it is.
__attribute__((naked)) void FaultHandler() {
  asm volatile(
      ".syntax unified\n"
      "cpsid i\n"
      "mrs r0, msp\n"
      "mov r4, lr\n"
      "mov r1, lr\n"
      "ldr r2, =__stack_top\n"
      "cmp r0, r2\n"
      "bhi 1f\n"
      "ldr r3, =__stack_middle\n"
      "cmp r0, r3\n"
      "bhs 2f\n"
      "1: msr msp, r2\n"
      "isb\n"
      "2: bl FaultEntry\n"
      "movs r1, #8\n"
      "tst r4, r1\n"
      "bne 3f\n"
      "bl ForgeFault\n"
      "3: sub sp, #32\n"
      "str r0, [sp, #0]\n"
      "ldr r1, =ForgeFault\n"
      "str r1, [sp, #24]\n"
      "ldr r1, =0x01000000\n"
      "str r1, [sp, #28]\n"
      "movs r1, #0x10\n"
      "orrs r4, r1\n"
      "bx r4\n");
}

const forge::FaultRecord* FaultEntry(const uint32_t* frame, uint32_t exception_return) {
  using forge::Register;
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  // The first floating-point instruction would save the program's registers into a frame that may
  // not exist.
  Register(forge::kFloatContext) = Register(forge::kFloatContext) & ~forge::kLazySaveActive;
#endif
  forge::FaultRecord record = {};
  if constexpr (forge::kMainline) {
    record.cfsr = Register(forge::kCfsr);
    record.hfsr = Register(forge::kHfsr);
    record.mmfar = Register(forge::kMmfar);
    record.bfar = Register(forge::kBfar);
    Register(forge::kCfsr) = record.cfsr;
    Register(forge::kHfsr) = record.hfsr;
  }
  const bool inside = frame >= __stack_bottom && frame + forge::kFrameWords <= __stack_top;
  const bool overflow = frame < __stack_bottom || (record.cfsr & forge::kStackOverflow) != 0;
  if (inside && (record.cfsr & forge::kFrameLost) == 0) {
    record.lr = frame[5];
    record.pc = frame[6];
    const uint32_t frame_words =
        (exception_return & 0x10) != 0 ? 8 : 26;  // with floating-point registers
    const uint32_t padding_words = frame[7] >> 9 & 1;
    record.sp = reinterpret_cast<uint32_t>(frame + frame_words + padding_words);
  } else {
    record.pc = forge::NearestReturnAddress(inside ? frame : __stack_bottom);
    record.sp = reinterpret_cast<uint32_t>(frame);
  }
  record.kind =
      static_cast<uint32_t>(overflow ? forge::Status::kStackCanary : forge::Status::kFault);
  forge::g_fault_record = record;
  return &forge::g_fault_record;
}
