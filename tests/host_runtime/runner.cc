// Runs the bundled runtime on the host, for tests: one request on standard input, one answer on
// standard output, until the input ends. See ../bundled_host.py for the other side.
//
// A request is a command and its fields, all little-endian: u32 numbers, and blobs of u32 length
// and bytes. An answer is one blob.

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "custom_ops.h"
#include "tensorflow/lite/kernels/internal/quantization_util.h"
#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/kernels/padding.h"
#include "tensorflow/lite/micro/debug_log.h"
#include "tensorflow/lite/micro/kernels/fixed_point.h"
#include "tensorflow/lite/micro/memory_plan.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_log.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/system_setup.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace {

enum Command : uint32_t {
  kRun = 1,
  kResolver = 2,
  kPlan = 3,
  kRatio = 4,
  kDouble = 5,
  kPadding = 6,
  kConvolution = 7,
};

enum Flag : uint32_t {
  kInt8Registrations = 1,
  kPreserveAllTensors = 2,
  kProfile = 4,
  kResetBeforeEach = 8,
  kSharedAllocator = 16,
  kTwoInterpreters = 32,  // the model twice, with one allocator; the second one's results
  kMisalignedArena = 64,  // the arena starts 4 bytes after a multiple of 16
};

// What a run got to. The order is that of the steps.
enum Stage : uint32_t { kConstruct, kAllocate, kInput, kInvoke, kDone };

std::string g_log;
const void* g_model = nullptr;
size_t g_model_bytes = 0;

// Memory of exactly `bytes` (malloc aligns it to 16), so that a sanitizer sees any step outside it.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes)
      : bytes_(bytes), data_(static_cast<uint8_t*>(malloc(bytes))) {}
  ~GuardedBytes() { free(data_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  uint8_t* data() { return data_; }
  size_t size() const { return bytes_; }

 private:
  size_t bytes_;
  uint8_t* data_;
};

bool ReadBytes(void* to, size_t bytes) { return fread(to, 1, bytes, stdin) == bytes; }

uint32_t ReadU32() {
  uint32_t value = 0;
  if (!ReadBytes(&value, sizeof(value))) exit(2);
  return value;
}

std::unique_ptr<GuardedBytes> ReadBlob() {
  auto blob = std::make_unique<GuardedBytes>(ReadU32());
  if (!ReadBytes(blob->data(), blob->size())) exit(2);
  return blob;
}

void PutBytes(std::string* answer, const void* data, size_t bytes) {
  if (bytes != 0) answer->append(static_cast<const char*>(data), bytes);
}

void PutU32(std::string* answer, uint32_t value) { PutBytes(answer, &value, sizeof(value)); }

void PutBlob(std::string* answer, const void* data, size_t bytes) {
  PutU32(answer, static_cast<uint32_t>(bytes));
  PutBytes(answer, data, bytes);
}

class LoggingProfiler : public tflite::MicroProfilerInterface {
 public:
  uint32_t BeginEvent(const char* tag) override {
    g_log += std::string("begin ") + tag + "\n";
    return ++events_;
  }
  void EndEvent(uint32_t event) override { g_log += "end " + std::to_string(event) + "\n"; }

 private:
  uint32_t events_ = 0;
};

using Resolver = tflite::MicroMutableOpResolver<20>;

void AddOps(uint32_t flags, Resolver* resolver) {
  const bool int8 = (flags & kInt8Registrations) != 0;
  resolver->AddAdd(int8 ? tflite::Register_ADD_INT8() : tflite::Register_ADD());
  resolver->AddAveragePool2D(int8 ? tflite::Register_AVERAGE_POOL_2D_INT8()
                                  : tflite::Register_AVERAGE_POOL_2D());
  resolver->AddConv2D(int8 ? tflite::Register_CONV_2D_INT8() : tflite::Register_CONV_2D());
  resolver->AddDepthwiseConv2D(int8 ? tflite::Register_DEPTHWISE_CONV_2D_INT8()
                                    : tflite::Register_DEPTHWISE_CONV_2D());
  resolver->AddDequantize();
  resolver->AddFullyConnected(int8 ? tflite::Register_FULLY_CONNECTED_INT8()
                                   : tflite::Register_FULLY_CONNECTED());
  resolver->AddLogistic();
  resolver->AddMaxPool2D(int8 ? tflite::Register_MAX_POOL_2D_INT8()
                              : tflite::Register_MAX_POOL_2D());
  resolver->AddQuantize();
  resolver->AddRelu();
  resolver->AddRelu6();
  resolver->AddReshape();
  resolver->AddSoftmax(int8 ? tflite::Register_SOFTMAX_INT8() : tflite::Register_SOFTMAX());
  resolver->AddCustom("TestNegate", Register_TEST_NEGATE());
  resolver->AddCustom("TestAccumulate", Register_TEST_ACCUMULATE());
}

Stage RunModel(tflite::MicroInterpreter* interpreter, uint32_t flags, uint32_t invocations,
               const std::vector<std::unique_ptr<GuardedBytes>>& inputs) {
  if (interpreter->initialization_status() != kTfLiteOk) return kConstruct;
  if (interpreter->AllocateTensors() != kTfLiteOk) return kAllocate;
  if (inputs.size() != interpreter->inputs_size()) return kInput;
  for (uint32_t run = 0; run < invocations; ++run) {
    if ((flags & kResetBeforeEach) != 0) interpreter->Reset();
    for (size_t i = 0; i < inputs.size(); ++i) {
      TfLiteTensor* tensor = interpreter->input(i);
      if (tensor == nullptr || tensor->bytes != inputs[i]->size()) return kInput;
      memcpy(tensor->data.raw, inputs[i]->data(), tensor->bytes);
    }
    if (interpreter->Invoke() != kTfLiteOk) return kInvoke;
  }
  return kDone;
}

void PutTensor(std::string* answer, TfLiteType type, const TfLiteIntArray* dims, const void* data,
               size_t bytes) {
  PutU32(answer, type);
  PutBlob(answer, dims->data, dims->size * sizeof(int));
  PutBlob(answer, data, bytes);
}

void PutOutputs(std::string* answer, tflite::MicroInterpreter* interpreter) {
  PutU32(answer, static_cast<uint32_t>(interpreter->outputs_size()));
  for (size_t i = 0; i < interpreter->outputs_size(); ++i) {
    const TfLiteTensor* tensor = interpreter->output(i);
    PutTensor(answer, tensor->type, tensor->dims, tensor->data.raw, tensor->bytes);
  }
}

std::string Run() {
  const uint32_t flags = ReadU32();
  const uint32_t arena_bytes = ReadU32();
  const uint32_t invocations = ReadU32();
  const auto model = ReadBlob();
  std::vector<std::unique_ptr<GuardedBytes>> inputs(ReadU32());
  for (auto& input : inputs) input = ReadBlob();

  const size_t arena_start = (flags & kMisalignedArena) != 0 ? 4 : 0;
  GuardedBytes memory(arena_start + arena_bytes);
  memset(memory.data(), 0xA5, memory.size());
  uint8_t* arena = memory.data() + arena_start;
  g_model = model->data();
  g_model_bytes = model->size();
  const tflite::Model* parsed = tflite::GetModel(model->data());
  Resolver resolver;
  AddOps(flags, &resolver);
  LoggingProfiler profiler;
  tflite::MicroProfilerInterface* used_profiler = (flags & kProfile) != 0 ? &profiler : nullptr;
  std::string answer;
  std::unique_ptr<tflite::MicroInterpreter> first, interpreter;
  if ((flags & (kSharedAllocator | kTwoInterpreters)) != 0) {
    auto* allocator = tflite::MicroAllocator::Create(arena, arena_bytes);
    first = std::make_unique<tflite::MicroInterpreter>(parsed, resolver, allocator);
    interpreter = std::make_unique<tflite::MicroInterpreter>(parsed, resolver, allocator, nullptr,
                                                             used_profiler);
  } else {
    interpreter = std::make_unique<tflite::MicroInterpreter>(parsed, resolver, arena, arena_bytes,
                                                             nullptr, used_profiler,
                                                             (flags & kPreserveAllTensors) != 0);
  }
  Stage stage = kDone;
  if ((flags & kTwoInterpreters) != 0) stage = RunModel(first.get(), flags, invocations, inputs);
  if (stage == kDone || stage == kInput) {
    stage = RunModel(interpreter.get(), flags, invocations, inputs);
  }
  PutU32(&answer, stage);
  PutU32(&answer, static_cast<uint32_t>(interpreter->arena_used_bytes()));
  PutU32(&answer, parsed->version());
  std::string outputs;
  if (stage == kDone) PutOutputs(&outputs, interpreter.get());
  if (stage != kDone) PutU32(&outputs, 0);
  interpreter.reset();
  PutBlob(&answer, g_log.data(), g_log.size());
  return answer + outputs;
}

// The resolver's answers to adding too much, the same twice, and looking things up.
std::string UseResolver() {
  std::string answer;
  tflite::MicroMutableOpResolver<2> resolver;
  PutU32(&answer, resolver.AddReshape());
  PutU32(&answer, resolver.AddReshape());
  PutU32(&answer, resolver.AddCustom("TestNegate", Register_TEST_NEGATE()));
  PutU32(&answer, resolver.AddRelu());
  PutU32(&answer, resolver.AddCustom("TestOther", Register_TEST_NEGATE()));
  PutU32(&answer, resolver.FindOp(tflite::BuiltinOperator_RESHAPE) != nullptr);
  PutU32(&answer, resolver.FindOp(tflite::BuiltinOperator_RELU) != nullptr);
  PutU32(&answer, resolver.FindOp(tflite::BuiltinOperator_CUSTOM) != nullptr);
  PutU32(&answer, resolver.FindOp("TestNegate") != nullptr);
  PutU32(&answer, resolver.FindOp("testnegate") != nullptr);
  PutU32(&answer, resolver.GetRegistrationLength());
  tflite::MicroMutableOpResolver<2> roomy;
  roomy.AddCustom("TestNegate", Register_TEST_NEGATE());
  PutU32(&answer, roomy.AddCustom("TestNegate", Register_TEST_NEGATE()));
  PutBlob(&answer, g_log.data(), g_log.size());
  return answer;
}

std::string Plan() {
  std::vector<tflite::PlannedBuffer> buffers(ReadU32());
  for (auto& buffer : buffers) {
    const uint32_t bytes = ReadU32();
    const auto first = static_cast<uint16_t>(ReadU32());
    buffer = {bytes, 0, first, static_cast<uint16_t>(ReadU32())};
  }
  std::string answer;
  PutU32(&answer, static_cast<uint32_t>(tflite::PlanMemory(buffers.data(), buffers.size())));
  for (const auto& buffer : buffers) PutU32(&answer, buffer.offset);
  return answer;
}

float ReadFloat() {
  const uint32_t bits = ReadU32();
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

std::string Ratio() {
  std::string answer;
  for (uint32_t count = ReadU32(); count > 0; --count) {
    const float a = ReadFloat();
    const float b = ReadFloat();
    const float c = ReadFloat();
    const tflite::ScaleFactor factor = tflite::ScaleFactorOf(a, b, c);
    PutU32(&answer, factor.multiplier);
    PutU32(&answer, factor.shift);
  }
  return answer;
}

std::string Double() {
  std::string answer;
  for (uint32_t count = ReadU32(); count > 0; --count) {
    double value;
    if (!ReadBytes(&value, sizeof(value))) exit(2);
    int32_t multiplier;
    int shift;
    tflite::QuantizeMultiplier(value, &multiplier, &shift);
    PutU32(&answer, multiplier);
    PutU32(&answer, shift);
  }
  return answer;
}

std::string Padding() {
  const auto padding = static_cast<TfLitePadding>(ReadU32());
  const int image = static_cast<int>(ReadU32());
  const int filter = static_cast<int>(ReadU32());
  const int stride = static_cast<int>(ReadU32());
  const int dilation = static_cast<int>(ReadU32());
  std::string answer;
  const int out = tflite::ComputeOutSize(padding, image, filter, stride, dilation);
  int offset;
  PutU32(&answer, out);
  PutU32(&answer, tflite::ComputePaddingWithOffset(stride, dilation, image, filter, out, &offset));
  PutU32(&answer, offset);
  return answer;
}

void ReportError(TfLiteContext*, const char* format, ...) {
  va_list args;
  va_start(args, format);
  VMicroPrintf(format, args);
  va_end(args);
}

// What a convolution kernel in TFLM's form asks of kernel_util.h when it prepares.
std::string Convolution() {
  const auto activation = static_cast<TfLiteFusedActivation>(ReadU32());
  const auto type = static_cast<TfLiteType>(ReadU32());
  const int channels = static_cast<int>(ReadU32());
  TfLiteTensor input = {}, filter = {}, output = {};
  input.type = output.type = type;
  filter.type = type == kTfLiteUInt8 ? kTfLiteUInt8 : kTfLiteInt8;
  input.params.scale = ReadFloat();
  output.params.scale = ReadFloat();
  output.params.zero_point = static_cast<int32_t>(ReadU32());
  const auto scales = ReadBlob();
  std::vector<int32_t> scale_array(1 + scales->size() / sizeof(float));
  scale_array[0] = static_cast<int32_t>(scale_array.size()) - 1;
  memcpy(&scale_array[1], scales->data(), scales->size());
  std::vector<int32_t> dims = {4, channels, 1, 1, 1};
  TfLiteAffineQuantization affine = {reinterpret_cast<TfLiteFloatArray*>(scale_array.data()),
                                     nullptr, 0};
  filter.dims = reinterpret_cast<TfLiteIntArray*>(dims.data());
  filter.quantization = {kTfLiteAffineQuantization, &affine};
  filter.params.scale = affine.scale->data[0];
  input.quantization.type = kTfLiteAffineQuantization;
  TfLiteContext context = {};
  context.ReportError = ReportError;

  int32_t multiplier = 0, act_min = 0, act_max = 0;
  int shift = 0;
  std::vector<int32_t> multipliers(channels), shifts(channels);
  const TfLiteStatus status = tflite::PopulateConvolutionQuantizationParams(
      &context, &input, &filter, nullptr, &output, activation, &multiplier, &shift, &act_min,
      &act_max, multipliers.data(), shifts.data(), channels);
  double joined = 0;
  tflite::GetQuantizedConvolutionMultipler(&context, &input, &filter, &output, &joined);
  std::string answer;
  PutU32(&answer, status);
  PutU32(&answer, act_min);
  PutU32(&answer, act_max);
  PutU32(&answer, multiplier);
  PutU32(&answer, shift);
  PutBytes(&answer, &joined, sizeof(joined));
  PutBytes(&answer, multipliers.data(), multipliers.size() * sizeof(int32_t));
  PutBytes(&answer, shifts.data(), shifts.size() * sizeof(int32_t));
  return answer;
}

}  // namespace

extern "C" {

size_t ModelBytes(const void* model) { return model == g_model ? g_model_bytes : 0; }

void DebugLog(const char* format, va_list args) {
  char text[1024];
  vsnprintf(text, sizeof(text), format, args);
  g_log += text;
}

int DebugVsnprintf(char* buffer, size_t buf_size, const char* format, va_list args) {
  return vsnprintf(buffer, buf_size, format, args);
}

}  // extern "C"

int main() {
  tflite::InitializeTarget();
  uint32_t command;
  while (ReadBytes(&command, sizeof(command))) {
    g_log.clear();
    std::string answer;
    switch (command) {
      case kRun:
        answer = Run();
        break;
      case kResolver:
        answer = UseResolver();
        break;
      case kPlan:
        answer = Plan();
        break;
      case kRatio:
        answer = Ratio();
        break;
      case kDouble:
        answer = Double();
        break;
      case kPadding:
        answer = Padding();
        break;
      case kConvolution:
        answer = Convolution();
        break;
      default:
        return 2;
    }
    const auto bytes = static_cast<uint32_t>(answer.size());
    fwrite(&bytes, sizeof(bytes), 1, stdout);
    fwrite(answer.data(), 1, answer.size(), stdout);
    fflush(stdout);
  }
  return 0;
}
