// The four-lanes-a-word operations of the Armv7E-M / Armv8-M DSP extension that the int8 kernels
// use.
//
// FORGE_KERNELS_USE_DSP is 1 where they are single instructions, or where FORGE_EMULATE_DSP asks
// for an emulation with the same results (so that a host can test the code the device runs).

#ifndef TENSORFLOW_LITE_MICRO_KERNELS_DSP_H_
#define TENSORFLOW_LITE_MICRO_KERNELS_DSP_H_

#include <cstdint>
#include <cstring>

#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)
#include <arm_acle.h>
#define FORGE_KERNELS_USE_DSP 1
#elif defined(FORGE_EMULATE_DSP)
#define FORGE_KERNELS_USE_DSP 1
#else
#define FORGE_KERNELS_USE_DSP 0
#endif

#if FORGE_KERNELS_USE_DSP

namespace tflite {
namespace dsp {

// Two signed 16-bit lanes in one word, the low half first.
using Pair = uint32_t;

// Hides where a value comes from. GCC would make every address of a loop a pointer of its own, and
// then lack registers for them.
template <typename T>
inline void Obscure(T& value) {
  __asm__("" : "+r"(value));
}

// Reads four int8 values; any alignment.
inline uint32_t LoadQuad(const int8_t* source) {
  uint32_t quad;
  std::memcpy(&quad, source, sizeof(quad));
  return quad;
}

inline Pair Broadcast(int32_t value) { return (static_cast<uint32_t>(value) & 0xFFFF) * 0x10001u; }

#if defined(__ARM_FEATURE_DSP)

inline Pair ExtendEven(uint32_t quad) { return __sxtb16(quad); }

// GCC does not fold the rotation into the extension by itself.
inline Pair ExtendOdd(uint32_t quad) {
  Pair pair;
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(quad));
  return pair;
}

inline Pair AddExtendedEven(Pair addend, uint32_t quad) { return __sxtab16(addend, quad); }

inline Pair AddExtendedOdd(Pair addend, uint32_t quad) {
  Pair pair;
  __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(pair) : "r"(addend), "r"(quad));
  return pair;
}

// sum + low(a) * low(b) + high(a) * high(b)
inline int32_t MultiplyAddBoth(Pair a, Pair b, int32_t sum) { return __smlad(a, b, sum); }

// sum + low(a) * low(b)
inline int32_t MultiplyAddLow(Pair a, Pair b, int32_t sum) { return __smlabb(a, b, sum); }

// sum + high(a) * high(b)
inline int32_t MultiplyAddHigh(Pair a, Pair b, int32_t sum) { return __smlatt(a, b, sum); }

#else

inline int32_t LowOf(Pair pair) { return static_cast<int16_t>(pair & 0xFFFF); }
inline int32_t HighOf(Pair pair) { return static_cast<int16_t>(pair >> 16); }

inline Pair MakePair(int32_t low, int32_t high) {
  return (static_cast<uint32_t>(low) & 0xFFFF) | (static_cast<uint32_t>(high) << 16);
}

inline Pair AddExtendedEven(Pair addend, uint32_t quad) {
  return MakePair(LowOf(addend) + static_cast<int8_t>(quad),
                  HighOf(addend) + static_cast<int8_t>(quad >> 16));
}

inline Pair AddExtendedOdd(Pair addend, uint32_t quad) {
  return AddExtendedEven(addend, quad >> 8);
}
inline Pair ExtendEven(uint32_t quad) { return AddExtendedEven(0, quad); }
inline Pair ExtendOdd(uint32_t quad) { return AddExtendedOdd(0, quad); }

inline int32_t MultiplyAddLow(Pair a, Pair b, int32_t sum) { return sum + LowOf(a) * LowOf(b); }
inline int32_t MultiplyAddHigh(Pair a, Pair b, int32_t sum) { return sum + HighOf(a) * HighOf(b); }

inline int32_t MultiplyAddBoth(Pair a, Pair b, int32_t sum) {
  return MultiplyAddHigh(a, b, MultiplyAddLow(a, b, sum));
}

#endif

}  // namespace dsp
}  // namespace tflite

#endif  // FORGE_KERNELS_USE_DSP

#endif  // TENSORFLOW_LITE_MICRO_KERNELS_DSP_H_
