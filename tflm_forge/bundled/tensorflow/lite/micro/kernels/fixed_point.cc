#include "tensorflow/lite/micro/kernels/fixed_point.h"

#include <cstring>

namespace tflite {
namespace {

constexpr int kMantissaBits = 23;
constexpr int kExponentBias = 127;
constexpr int32_t kOne = INT32_MAX;

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

int ExponentOf(uint32_t bits) { return static_cast<int>(bits >> kMantissaBits & 0xFF); }

// Of a normal number, the hidden bit included.
uint32_t MantissaOf(uint32_t bits) {
  return (bits & ((1u << kMantissaBits) - 1)) | (1u << kMantissaBits);
}

// floor(product * 2^32 / divisor) with the last bit set when anything was cut off.
// product < 2^48 and divisor < 2^24, so that a remainder and the next byte fit a 32-bit division.
uint64_t DivideSticky(uint64_t product, uint32_t divisor) {
  uint32_t remainder = static_cast<uint32_t>(product >> 24);
  uint64_t quotient = remainder / divisor;
  remainder %= divisor;
  uint64_t rest = product << 40;
  for (int byte = 0; byte < 7; ++byte) {
    remainder = remainder << 8 | static_cast<uint32_t>(rest >> 56);
    rest <<= 8;
    quotient = quotient << 8 | remainder / divisor;
    remainder %= divisor;
  }
  return quotient | (remainder != 0);
}

}  // namespace

ScaleFactor ScaleFactorOf(float a, float b, float c) {
  const uint32_t a_bits = BitsOf(a);
  const uint32_t b_bits = BitsOf(b);
  const uint32_t c_bits = BitsOf(c);
  if (ExponentOf(a_bits) == 0 || ExponentOf(b_bits) == 0) return {0, 0};

  const uint64_t product = static_cast<uint64_t>(MantissaOf(a_bits)) * MantissaOf(b_bits);
  uint64_t quotient = DivideSticky(product, MantissaOf(c_bits));
  int shift = ExponentOf(a_bits) + ExponentOf(b_bits) - ExponentOf(c_bits) - kExponentBias -
              kMantissaBits - 32 + 57;
  while (quotient >> 56 == 0) {
    quotient <<= 1;
    --shift;
  }
  // To the 53 bits of a double, ties to even; then to 31 bits, ties away from zero.
  const uint64_t as_double = (quotient + 7 + (quotient >> 4 & 1)) >> 4;
  uint32_t multiplier = static_cast<uint32_t>((as_double + (1u << 21)) >> 22);
  if (multiplier == 1u << 31) {
    multiplier >>= 1;
    ++shift;
  }
  if (shift < -31) return {0, 0};
  if (shift > 31) shift = 31;
  const bool negative = (a_bits ^ b_bits ^ c_bits) >> 31 != 0;
  return {negative ? -static_cast<int32_t>(multiplier) : static_cast<int32_t>(multiplier), shift};
}

int32_t ReciprocalOfOnePlus(int32_t x) {
  // Newton-Raphson on d = (1 + x) / 2 in [1/2, 1), from the estimate 48/17 - 32/17 * d with the
  // least greatest error; the estimate and its refinements in Q2.29.
  constexpr int32_t k48Over17 = 1515870810;
  constexpr int32_t k32Over17 = 1010580540;
  const auto half_sum = static_cast<int32_t>((static_cast<uint32_t>(x) + (1u << 31)) >> 1);
  int32_t estimate = k48Over17 + RoundingHighMultiply(half_sum, -k32Over17);
  for (int i = 0; i < 3; ++i) {
    const int32_t error = (1 << 29) - RoundingHighMultiply(half_sum, estimate);
    estimate += RoundingHighMultiply(estimate, error) * 4;
  }
  // 1 / d is twice what is asked for: Q2.29 read as Q1.30, then to Q0.31 with saturation at 1.
  return estimate >= 1 << 30 ? kOne : estimate * 2;
}

int32_t ExpOfNegative(int32_t x, int integer_bits) {
  if (x == 0) return kOne;
  // x = -(quarters * 1/4) - (1/4 - fraction): a Taylor series for the last part, in [-1/4, 0), one
  // factor for each set bit of the rest.
  const int quarter_shift = 29 - integer_bits;
  const int32_t quarter = 1 << quarter_shift;
  const int32_t fraction = (x & (quarter - 1)) - quarter;
  int32_t remainder = (fraction - x) >> quarter_shift;

  constexpr int32_t kExpMinusEighth = 1895147668;
  constexpr int32_t kOneThird = 715827883;
  const int32_t y = fraction * (1 << integer_bits) + (1 << 28);  // around -1/8, Q0.31
  const int32_t y2 = RoundingHighMultiply(y, y);
  const int32_t y3 = RoundingHighMultiply(y2, y);
  const int32_t y4 = RoundingHighMultiply(y2, y2);
  const int32_t third_and_fourth =
      RoundingHighMultiply(RoundingShiftRight(y4, 2) + y3, kOneThird);  // y^3/3 + y^4/12
  const int32_t series = y + RoundingShiftRight(third_and_fourth + y2, 1);
  int32_t result = kExpMinusEighth + RoundingHighMultiply(kExpMinusEighth, series);

  // exp(-1/4), exp(-1/2), exp(-1), ... exp(-16)
  static constexpr int32_t kFactors[] = {1672461947, 1302514674, 790015084, 290630308,
                                         39332535,   720401,     242};
  for (const int32_t factor : kFactors) {
    if (remainder & 1) result = RoundingHighMultiply(result, factor);
    remainder >>= 1;
  }
  return result;
}

}  // namespace tflite
