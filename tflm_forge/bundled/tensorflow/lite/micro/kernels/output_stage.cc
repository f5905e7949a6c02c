#include "tensorflow/lite/micro/kernels/output_stage.h"

#include "tensorflow/lite/micro/kernels/dsp.h"

namespace tflite {
namespace {

constexpr int kRowsAtOnce = 4;

// Four dot products of one input; the rows start `row_step` apart.
void MultiplyFourRows(const int8_t* input, int32_t input_offset, const int8_t* row, int row_step,
                      int depth, int32_t* sums) {
  int32_t sum0 = 0;
  int32_t sum1 = 0;
  int32_t sum2 = 0;
  int32_t sum3 = 0;
  const int8_t* row3 = row + 3 * row_step;
  const int8_t* const end = input + depth;
#if FORGE_KERNELS_USE_DSP
  const dsp::Pair offset = dsp::Broadcast(input_offset);
  const int8_t* const quads_end = input + (depth & ~3);
  while (input != quads_end) {
    const uint32_t inputs = dsp::LoadQuad(input);
    const dsp::Pair even = dsp::AddExtendedEven(offset, inputs);
    const dsp::Pair odd = dsp::AddExtendedOdd(offset, inputs);
    uint32_t weights = dsp::LoadQuad(row);
    sum0 = dsp::MultiplyAddBoth(even, dsp::ExtendEven(weights), sum0);
    sum0 = dsp::MultiplyAddBoth(odd, dsp::ExtendOdd(weights), sum0);
    weights = dsp::LoadQuad(row + row_step);
    sum1 = dsp::MultiplyAddBoth(even, dsp::ExtendEven(weights), sum1);
    sum1 = dsp::MultiplyAddBoth(odd, dsp::ExtendOdd(weights), sum1);
    weights = dsp::LoadQuad(row + 2 * row_step);
    sum2 = dsp::MultiplyAddBoth(even, dsp::ExtendEven(weights), sum2);
    sum2 = dsp::MultiplyAddBoth(odd, dsp::ExtendOdd(weights), sum2);
    weights = dsp::LoadQuad(row3);
    sum3 = dsp::MultiplyAddBoth(even, dsp::ExtendEven(weights), sum3);
    sum3 = dsp::MultiplyAddBoth(odd, dsp::ExtendOdd(weights), sum3);
    input += 4;
    row += 4;
    row3 += 4;
  }
#endif
  while (input != end) {
    const int32_t value = *input++ + input_offset;
    sum0 += value * row[0];
    sum1 += value * row[row_step];
    sum2 += value * row[2 * row_step];
    sum3 += value * *row3++;
    ++row;
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}

}  // namespace

void StoreChannels(const OutputStage& stage, const int32_t* sums, int channel, int count,
                   int8_t* output) {
  const ScaleFactor* factor = stage.factors + channel * stage.factor_step;
  for (int i = 0; i < count; ++i) {
    int32_t value = sums[i];
    if (stage.bias != nullptr) value += stage.bias[channel + i];
    value = Rescale(value, *factor) + stage.offset;
    factor += stage.factor_step;
    output[i] = static_cast<int8_t>(Clamp(value, stage.activation_min, stage.activation_max));
  }
}

void MultiplyRows(const OutputStage& stage, const int8_t* input, int32_t input_offset,
                  const int8_t* rows, int depth, int channel, int count, int8_t* output) {
  int done = 0;
  while (done < count) {
    // The last rows are done once more rather than fewer at once; under four rows, four times one.
    int row_step = depth;
    int stored = kRowsAtOnce;
    if (count < kRowsAtOnce) {
      row_step = 0;
      stored = 1;
    } else if (done + kRowsAtOnce > count) {
      done = count - kRowsAtOnce;
    }
    int32_t sums[kRowsAtOnce];
    MultiplyFourRows(input, input_offset, rows + (channel + done) * depth, row_step, depth, sums);
    StoreChannels(stage, sums, channel + done, stored, output + done);
    done += stored;
  }
}

}  // namespace tflite
