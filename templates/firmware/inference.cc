#include "inference.h"

#include <cstring>

#include "crc32.h"
#include "device.h"
#include "link.h"
#include "op_trace.h"

namespace forge {
namespace {

constexpr uint32_t kNoDifference = 0xFFFFFFFF;
constexpr uint32_t kTensorBytes = 16;  // of an entry of TENSORS without its dimensions
constexpr float kTwoToMinus31 = 1.0f / 2147483648.0f;

enum Space : uint8_t { kInputs, kOutputs, kSpaces };

uint32_t TensorCount(uint8_t space) {
  const tflite::MicroInterpreter& interpreter = *g_device.interpreter;
  return static_cast<uint32_t>(space == kInputs ? interpreter.inputs_size()
                                                : interpreter.outputs_size());
}

TfLiteTensor* TensorAt(uint8_t space, uint32_t index) {
  if (space >= kSpaces || index >= TensorCount(space)) return nullptr;
  return space == kInputs ? g_device.interpreter->input(index)
                          : g_device.interpreter->output(index);
}

// Takes space and index from the request.
TfLiteTensor* RequestedTensor(Exchange& exchange) {
  const uint8_t space = exchange.in.Get8();
  return TensorAt(space, exchange.in.Get8());
}

bool IsInside(const TfLiteTensor& tensor, uint32_t offset, uint32_t length) {
  return offset <= tensor.bytes && length <= tensor.bytes - offset;
}

// Marsaglia's xorshift32; link.h says how the data is made of it.
class Xorshift {
 public:
  explicit Xorshift(uint32_t seed) : state_(seed == 0 ? 1 : seed) {}

  uint32_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }

 private:
  uint32_t state_;
};

void FillInput(const TfLiteTensor& tensor, Xorshift& random) {
  if (tensor.type == kTfLiteFloat32) {
    for (uint32_t i = 0; i < tensor.bytes / sizeof(float); ++i) {
      tensor.data.f[i] = static_cast<float>(static_cast<int32_t>(random.Next())) * kTwoToMinus31;
    }
    return;
  }
  const uint32_t mask = tensor.type == kTfLiteBool ? 1 : 0xFF;
  for (uint32_t i = 0; i < tensor.bytes; ++i) {
    tensor.data.uint8[i] = static_cast<uint8_t>(random.Next() & mask);
  }
}

void FillInputs(uint32_t seed) {
  Xorshift random(seed);
  for (uint32_t i = 0; i < TensorCount(kInputs); ++i) FillInput(*TensorAt(kInputs, i), random);
}

uint32_t CrcOfOutputs() {
  uint32_t crc = 0;
  for (uint32_t i = 0; i < TensorCount(kOutputs); ++i) {
    const TfLiteTensor& tensor = *TensorAt(kOutputs, i);
    crc = Crc32(crc, tensor.data.raw, static_cast<uint32_t>(tensor.bytes));
  }
  return crc;
}

void PutTensor(BodyWriter& out, uint8_t space, uint32_t index, const TfLiteTensor& tensor) {
  out.Put8(space);
  out.Put8(static_cast<uint8_t>(index));
  out.Put8(static_cast<uint8_t>(tensor.type));
  out.Put8(static_cast<uint8_t>(tensor.dims->size));
  out.PutBytes(tensor.dims->data, sizeof(int32_t) * static_cast<uint32_t>(tensor.dims->size));
  out.PutFloat(tensor.params.scale);
  out.Put32(static_cast<uint32_t>(tensor.params.zero_point));
  out.Put32(static_cast<uint32_t>(tensor.bytes));
}

}  // namespace

Status AnswerTensors(Exchange& exchange) {
  const uint32_t from = exchange.in.Get16();
  if (!exchange.in.Complete()) return Status::kBadRequest;
  ListHead head(exchange.out);
  const uint32_t inputs = TensorCount(kInputs);
  const uint32_t total = inputs + TensorCount(kOutputs);
  uint32_t next = from;
  for (; next < total; ++next) {
    const uint8_t space = next < inputs ? kInputs : kOutputs;
    const uint32_t index = space == kInputs ? next : next - inputs;
    const TfLiteTensor& tensor = *TensorAt(space, index);
    const uint32_t bytes =
        kTensorBytes + sizeof(int32_t) * static_cast<uint32_t>(tensor.dims->size);
    if (bytes > exchange.out.left()) break;
    PutTensor(exchange.out, space, index, tensor);
  }
  head.Write(total, next - from);
  return Status::kOk;
}

Status AnswerWrite(Exchange& exchange) {
  BodyReader& in = exchange.in;
  const uint8_t space = in.Get8();
  const uint8_t index = in.Get8();
  const uint32_t offset = in.Get32();
  if (in.IsShort()) return Status::kBadRequest;
  TfLiteTensor* tensor = TensorAt(space, index);
  if (tensor == nullptr || space != kInputs) return Status::kNoSuchTensor;
  exchange.detail = static_cast<uint32_t>(tensor->bytes);
  if (!IsInside(*tensor, offset, in.left())) return Status::kOutOfRange;
  std::memcpy(tensor->data.raw + offset, in.data(), in.left());
  return Status::kOk;
}

Status AnswerRead(Exchange& exchange) {
  const TfLiteTensor* tensor = RequestedTensor(exchange);
  const uint32_t offset = exchange.in.Get32();
  const uint16_t length = exchange.in.Get16();
  if (!exchange.in.Complete() || length > exchange.out.left()) return Status::kBadRequest;
  if (tensor == nullptr) return Status::kNoSuchTensor;
  exchange.detail = static_cast<uint32_t>(tensor->bytes);
  if (!IsInside(*tensor, offset, length)) return Status::kOutOfRange;
  exchange.out.PutBytes(tensor->data.raw + offset, length);
  return Status::kOk;
}

Status AnswerCrc(Exchange& exchange) {
  const TfLiteTensor* tensor = RequestedTensor(exchange);
  if (!exchange.in.Complete()) return Status::kBadRequest;
  if (tensor == nullptr) return Status::kNoSuchTensor;
  exchange.out.Put32(Crc32(0, tensor->data.raw, static_cast<uint32_t>(tensor->bytes)));
  return Status::kOk;
}

Status AnswerInvoke(Exchange& exchange) {
  const uint32_t count = exchange.in.Get32();
  if (!exchange.in.Complete() || count == 0) return Status::kBadRequest;
  StartProgress(count);
  Status status = Status::kOk;
  uint64_t total = 0;
  uint64_t shortest = UINT64_MAX;
  uint64_t longest = 0;
  for (uint32_t done = 0; done < count && status == Status::kOk;) {
    const uint64_t start = BoardTicks() - ReportingTicks();
    if (RunInference() != kTfLiteOk) status = Status::kInvokeFailed;
    const uint64_t ticks = BoardTicks() - ReportingTicks() - start;
    total += ticks;
    if (ticks < shortest) shortest = ticks;
    if (ticks > longest) longest = ticks;
    ReportProgress(++done);
  }
  exchange.out.Put16(static_cast<uint16_t>(status));
  exchange.out.Put64(total);
  exchange.out.Put64(shortest);
  exchange.out.Put64(longest);
  return Status::kOk;
}

Status AnswerSoak(Exchange& exchange) {
  const uint32_t loops = exchange.in.Get32();
  const uint32_t seed = exchange.in.Get32();
  if (!exchange.in.Complete() || loops == 0) return Status::kBadRequest;
  StartProgress(loops);
  Status status = Status::kOk;
  uint32_t first_crc = 0;
  uint32_t first_difference = kNoDifference;
  uint32_t done = 0;
  while (done < loops) {
    FillInputs(seed);
    if (RunInference() != kTfLiteOk) {
      status = Status::kInvokeFailed;
      break;
    }
    const uint32_t crc = CrcOfOutputs();
    if (done == 0) first_crc = crc;
    if (crc != first_crc && first_difference == kNoDifference) {
      first_difference = done;
      status = Status::kMismatch;
    }
    ReportProgress(++done);
    if (!StackCanaryIntact()) {
      status = Status::kStackCanary;
      break;
    }
  }
  exchange.out.Put16(static_cast<uint16_t>(status));
  exchange.out.Put32(done);
  exchange.out.Put32(first_crc);
  exchange.out.Put32(first_difference);
  exchange.out.Put32(StackHighWater());
  return Status::kOk;
}

Status AnswerProfile(Exchange& exchange) {
  const uint32_t from = exchange.in.Get16();
  if (!exchange.in.Complete()) return Status::kBadRequest;
  ListHead head(exchange.out);
  StartProgress(1);
  const uint8_t* start = exchange.out.end();
  CollectOpTicks(&exchange.out, from);
  const TfLiteStatus status = RunInference();
  CollectOpTicks(nullptr, 0);
  if (status != kTfLiteOk) return Status::kInvokeFailed;
  const uint32_t bytes = static_cast<uint32_t>(exchange.out.end() - start);
  head.Write(CurrentOp().position, bytes / sizeof(uint64_t));
  return Status::kOk;
}

}  // namespace forge
