#include "inference.h"

#include <cstring>

#include "crc32.h"
#include "device.h"
#include "interpreter.h"
#include "link.h"
#include "op_trace.h"
#include "tensorflow/lite/micro/memory_helpers.h"

namespace forge {
namespace {

constexpr uint32_t kNoDifference = 0xFFFFFFFF;
constexpr uint32_t kTensorBytes = 16;          // of an entry of TENSORS without its dimensions
constexpr uint32_t kTwoToMinus31 = 31u << 23;  // taken from the exponent of a float32

constexpr uint32_t kOffsetAt = 2;   // in WRITE, READ and LAYER, behind what names the tensor
constexpr uint32_t kLengthAt = 6;   // in READ and LAYER, behind the offset
constexpr uint32_t kDataAt = 6;     // in WRITE, behind the offset
constexpr uint32_t kPatternAt = 2;  // in FILL, behind index and mode

enum Space : uint8_t { kInputs, kOutputs, kSpaces };
enum FillMode : uint8_t { kPattern, kRandom, kFillModes };

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

// Space and index stand first in the requests that name a tensor.
TfLiteTensor* RequestedTensor(const Request& request) {
  return TensorAt(request.body[0], request.body[1]);
}

// Checks that the `length` bytes from the request's offset on are among the `bytes` of a tensor.
bool IsInside(Request& request, uint32_t bytes, uint32_t length) {
  const uint32_t offset = Get<uint32_t>(request.body, kOffsetAt);
  request.detail = bytes;
  return offset <= bytes && length <= bytes - offset;
}

// Answers with as much of a tensor's `bytes` as the request names.
Status PutPart(Request& request, const char* data, uint32_t bytes) {
  const uint32_t length = Get<uint16_t>(request.body, kLengthAt);
  if (length > AnswerRoom()) return Status::kBadRequest;
  if (!IsInside(request, bytes, length)) return Status::kOutOfRange;
  PutBytes(data + Get<uint32_t>(request.body, kOffsetAt), length);
  return Status::kOk;
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
      // The generator never gives 0, so there is an exponent to take from: no multiplication, which
      // would link a library on cores without floating point.
      const float value = static_cast<float>(static_cast<int32_t>(random.Next()));
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      bits -= kTwoToMinus31;
      std::memcpy(tensor.data.raw + i * sizeof(float), &bits, sizeof(bits));
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
  uint32_t index = 0;
  while (const TfLiteTensor* tensor = TensorAt(kInputs, index++)) FillInput(*tensor, random);
}

uint32_t CrcOfOutputs() {
  uint32_t crc = 0;
  uint32_t index = 0;
  while (const TfLiteTensor* tensor = TensorAt(kOutputs, index++)) {
    crc = Crc32(crc, tensor->data.raw, static_cast<uint32_t>(tensor->bytes));
  }
  return crc;
}

void PutTensor(uint32_t space, uint32_t index, const TfLiteTensor& tensor, uint32_t dims_bytes) {
  Put8(space);
  Put8(index);
  Put8(tensor.type);
  Put8(static_cast<uint32_t>(tensor.dims->size));
  PutBytes(tensor.dims->data, dims_bytes);
  PutBytes(&tensor.params.scale, sizeof(float));
  Put32(static_cast<uint32_t>(tensor.params.zero_point));
  Put32(static_cast<uint32_t>(tensor.bytes));
}

}  // namespace

Status AnswerTensors(Request& request) {
  const uint32_t from = Get<uint16_t>(request.body, 0);
  uint8_t* head = PutListHead();
  const uint32_t inputs = TensorCount(kInputs);
  const uint32_t total = inputs + TensorCount(kOutputs);
  uint32_t next = from;
  for (; next < total; ++next) {
    const uint8_t space = next < inputs ? kInputs : kOutputs;
    const uint32_t index = space == kInputs ? next : next - inputs;
    const TfLiteTensor& tensor = *TensorAt(space, index);
    const uint32_t dims_bytes = sizeof(int32_t) * static_cast<uint32_t>(tensor.dims->size);
    if (kTensorBytes + dims_bytes > AnswerRoom()) break;
    PutTensor(space, index, tensor, dims_bytes);
  }
  FillListHead(head, total, next - from);
  return Status::kOk;
}

Status AnswerWrite(Request& request) {
  TfLiteTensor* tensor = RequestedTensor(request);
  if (tensor == nullptr || request.body[0] != kInputs) return Status::kNoSuchTensor;
  const uint32_t length = request.bytes - kDataAt;
  if (!IsInside(request, static_cast<uint32_t>(tensor->bytes), length)) return Status::kOutOfRange;
  std::memcpy(tensor->data.raw + Get<uint32_t>(request.body, kOffsetAt), request.body + kDataAt,
              length);
  return Status::kOk;
}

Status AnswerRead(Request& request) {
  const TfLiteTensor* tensor = RequestedTensor(request);
  if (tensor == nullptr) return Status::kNoSuchTensor;
  return PutPart(request, tensor->data.raw, static_cast<uint32_t>(tensor->bytes));
}

Status AnswerCrc(Request& request) {
  const TfLiteTensor* tensor = RequestedTensor(request);
  if (tensor == nullptr) return Status::kNoSuchTensor;
  Put32(Crc32(0, tensor->data.raw, static_cast<uint32_t>(tensor->bytes)));
  return Status::kOk;
}

Status AnswerFill(Request& request) {
  const TfLiteTensor* tensor = TensorAt(kInputs, request.body[0]);
  if (tensor == nullptr) return Status::kNoSuchTensor;
  if (request.body[1] >= kFillModes) return Status::kBadRequest;
  const uint8_t* pattern = request.body + kPatternAt;
  if (request.body[1] == kRandom) {
    Xorshift random(Get<uint32_t>(pattern, 0));
    FillInput(*tensor, random);
    return Status::kOk;
  }
  for (uint32_t i = 0; i < tensor->bytes; ++i)
    tensor->data.uint8[i] = pattern[i % sizeof(uint32_t)];
  return Status::kOk;
}

Status AnswerForget(Request&) {
  return ResetState() == kTfLiteOk ? Status::kOk : Status::kInvokeFailed;
}

Status AnswerInvoke(Request& request) {
  const uint32_t count = Get<uint32_t>(request.body, 0);
  if (count == 0) return Status::kBadRequest;
  StartProgress(count);
  Status status = Status::kOk;
  struct {
    uint64_t total, shortest, longest;
  } ticks = {0, UINT64_MAX, 0};
  for (uint32_t done = 0; done < count && status == Status::kOk;) {
    const uint64_t start = InferenceTicks();
    if (RunInference() != kTfLiteOk) status = Status::kInvokeFailed;
    const uint64_t spent = InferenceTicks() - start;
    ticks.total += spent;
    if (spent < ticks.shortest) ticks.shortest = spent;
    if (spent > ticks.longest) ticks.longest = spent;
    ReportProgress(++done);
  }
  Put16(static_cast<uint32_t>(status));
  PutBytes(&ticks, sizeof(ticks));
  return Status::kOk;
}

Status AnswerSoak(Request& request) {
  const uint32_t loops = Get<uint32_t>(request.body, 0);
  if (loops == 0) return Status::kBadRequest;
  StartProgress(loops);
  Status status = Status::kOk;
  struct {
    uint32_t done, crc, first_difference, stack_high_water;
  } result = {0, 0, kNoDifference, 0};
  while (result.done < loops) {
    FillInputs(Get<uint32_t>(request.body, sizeof(loops)));
    if (ResetState() != kTfLiteOk || RunInference() != kTfLiteOk) {
      status = Status::kInvokeFailed;
      break;
    }
    const uint32_t crc = CrcOfOutputs();
    if (result.done == 0) result.crc = crc;
    if (crc != result.crc && status == Status::kOk) {
      status = Status::kMismatch;
      result.first_difference = result.done;
    }
    ReportProgress(++result.done);
    if (!StackCanaryIntact()) {
      status = Status::kStackCanary;
      break;
    }
  }
  result.stack_high_water = StackHighWater();
  Put16(static_cast<uint32_t>(status));
  PutBytes(&result, sizeof(result));
  return Status::kOk;
}

Status AnswerProfile(Request& request) {
  const uint32_t from = Get<uint16_t>(request.body, 0);
  uint8_t* head = PutListHead();
  const uint8_t* start = AnswerEnd();
  StartProgress(1);
  CollectOpTicks(from + 1);
  const TfLiteStatus status = RunInference();
  CollectOpTicks(kCollectNothing);
  if (status != kTfLiteOk) return Status::kInvokeFailed;
  const uint32_t bytes = static_cast<uint32_t>(AnswerEnd() - start);
  FillListHead(head, CurrentOp().position, bytes / sizeof(uint64_t));
  return Status::kOk;
}

Status AnswerLayer(Request& request) {
  const int32_t index = g_device.model.OutputOf(Get<uint16_t>(request.body, 0));
  if (index < 0) return Status::kNoSuchTensor;
  const TfLiteEvalTensor* tensor = g_device.interpreter->GetTensor(index);
  size_t bytes = 0;
  if (tensor == nullptr || tensor->data.raw == nullptr ||
      tflite::TfLiteEvalTensorByteLength(tensor, &bytes) != kTfLiteOk) {
    return Status::kNoSuchTensor;
  }
  const uint32_t length = Get<uint16_t>(request.body, kLengthAt);
  if (length != 0) return PutPart(request, tensor->data.raw, static_cast<uint32_t>(bytes));
  Put32(static_cast<uint32_t>(bytes));
  Put32(Crc32(0, tensor->data.raw, static_cast<uint32_t>(bytes)));
  return Status::kOk;
}

}  // namespace forge
