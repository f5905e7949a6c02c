#include "tensorflow/lite/micro/kernels/output_stage.h"

#include "tensorflow/lite/micro/kernels/dsp.h"

namespace tflite {
namespace {

constexpr int kRowsAtOnce = 4;

#if FORGE_KERNELS_USE_DSP
// Adds the products of `quads` times four inputs with four rows that start `row_step` apart. Not
// inlined: the loop needs all registers.
[[gnu::noinline]] void AddQuads(const int8_t* input, unsigned quads, dsp::Pair offset,
                                const int8_t* row, int row_step, int32_t* sums) {
  int32_t sum0 = sums[0];
  int32_t sum1 = sums[1];
  int32_t sum2 = sums[2];
  int32_t sum3 = sums[3];
  do {
    dsp::Obscure(row);
    dsp::Obscure(row_step);
    const uint32_t inputs = dsp::LoadQuad(input);
    input += 4;
    const dsp::Pair even = dsp::AddExtendedEven(offset, inputs);
    const dsp::Pair odd = dsp::AddExtendedOdd(offset, inputs);
    uint32_t weights = dsp::LoadQuad(row);
    sum0 = dsp::MultiplyAddBoth(even, dsp::ExtendEven(weights), sum0);
    sum0 = dsp::MultiplyAddBoth(odd, dsp::ExtendOdd(weights), sum0);
    weights = dsp::LoadQuad(row + row_step);
    sum1 = dsp::MultiplyAddBoth(even, dsp::ExtendEven(weights), sum1);
    sum1 = dsp::MultiplyAddBoth(odd, dsp::ExtendOdd(weights), sum1);
    const int8_t* row2 = row + 2 * row_step;
    dsp::Obscure(row2);
    weights = dsp::LoadQuad(row2);
    sum2 = dsp::MultiplyAddBoth(even, dsp::ExtendEven(weights), sum2);
    sum2 = dsp::MultiplyAddBoth(odd, dsp::ExtendOdd(weights), sum2);
    weights = dsp::LoadQuad(row2 + row_step);
    sum3 = dsp::MultiplyAddBoth(even, dsp::ExtendEven(weights), sum3);
    sum3 = dsp::MultiplyAddBoth(odd, dsp::ExtendOdd(weights), sum3);
    row += 4;
  } while (--quads != 0);
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}
#endif

// The same for `count` single inputs.
[[gnu::noinline]] void AddSingles(const int8_t* input, unsigned count, int32_t input_offset,
                                  const int8_t* row, int row_step, int32_t* sums) {
  int32_t sum0 = sums[0];
  int32_t sum1 = sums[1];
  int32_t sum2 = sums[2];
  int32_t sum3 = sums[3];
  do {
    const int32_t value = *input++ + input_offset;
    const int8_t* const row2 = row + 2 * row_step;
    sum0 += value * row[0];
    sum1 += value * row[row_step];
    sum2 += value * row2[0];
    sum3 += value * row2[row_step];
    ++row;
  } while (--count != 0);
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}

// Four dot products of one input; the rows start `row_step` apart.
void MultiplyFourRows(const int8_t* input, int32_t input_offset, const int8_t* row, int row_step,
                      unsigned depth, int32_t* sums) {
  for (int i = 0; i < kRowsAtOnce; ++i) sums[i] = 0;
#if FORGE_KERNELS_USE_DSP
  const unsigned quads = depth / 4;
  if (quads != 0) AddQuads(input, quads, dsp::Broadcast(input_offset), row, row_step, sums);
  input += quads * 4;
  row += quads * 4;
  depth %= 4;
#endif
  if (depth != 0) AddSingles(input, depth, input_offset, row, row_step, sums);
}

}  // namespace

void StoreChannels(const OutputStage& stage, const int32_t* sums, int channel, int count,
                   int8_t* output) {
  // Copies, for the outputs might alias the stage.
  const int bias_step = stage.bias_step;
  const int factor_step = stage.factor_step;
  const int32_t offset = stage.offset;
  const int32_t activation_min = stage.activation_min;
  const int32_t activation_max = stage.activation_max;
  const int32_t* bias = stage.biases + channel * bias_step;
  const ScaleFactor* factor = stage.factors + channel * factor_step;
  do {
    const auto sum =
        static_cast<int32_t>(static_cast<uint32_t>(*sums++) + static_cast<uint32_t>(*bias));
    const int32_t value = Rescale(sum, *factor) + offset;
    bias += bias_step;
    factor += factor_step;
    *output++ = static_cast<int8_t>(Clamp(value, activation_min, activation_max));
  } while (--count != 0);
}

void MultiplyRows(const OutputStage& stage, const int8_t* input, int32_t input_offset,
                  const int8_t* rows, int depth, int channel, int count, int8_t* output) {
  rows += channel * depth;
  while (count > 0) {
    const int block = count < kStoredAtOnce ? count : kStoredAtOnce;
    // Fewer than four rows are done one after the other, as four times the same one.
    const bool is_few = block < kRowsAtOnce;
    int32_t sums[kStoredAtOnce + kRowsAtOnce - 1];
    for (int row = 0; row < block; row += is_few ? 1 : kRowsAtOnce) {
      // The last four rows, some of them once more.
      if (!is_few && row > block - kRowsAtOnce) row = block - kRowsAtOnce;
      MultiplyFourRows(input, input_offset, rows + row * depth, is_few ? 0 : depth, depth,
                       sums + row);
    }
    StoreChannels(stage, sums, channel, block, output);
    rows += block * depth;
    channel += block;
    output += block;
    count -= block;
  }
}

}  // namespace tflite
