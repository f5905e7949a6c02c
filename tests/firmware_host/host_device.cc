// The fake device: a board whose UART is standard input and output, and an interpreter with a fixed
// graph.
//
//   host_device MODEL.tflite [name=number ...]
//
// Graph: FULLY_CONNECTED, SOFTMAX, Fake (which calls SOFTMAX once more, as an op with a subgraph
// would), FULLY_CONNECTED. Inputs are INT8[1,1000], FLOAT32[5] and BOOL[3]; the outputs are copies
// of them. An inference overwrites its inputs, as a planner that reuses memory does, and prints
// "invoke N".
//
//   register_fails=1    RegisterOps refuses an op
//   register_fewer=1    RegisterOps leaves one out
//   prepare_fails=N     Prepare of operator N fails, from 1
//   prepare_aborts=N    Prepare of operator N aborts
//   stateful=1          each inference since the last reset of all state adds 1 to output 0
//   arena_used=N        bytes of the arena that the allocator itself takes
//   allocate_fails=1    AllocateTensors fails outside any operator
//   invoke_fails=N      inference N fails, from 1
//   invoke_faults=N     inference N takes a fault
//   drift=N             the output of inference N differs
//   canary=N            the stack canary dies in inference N
//   canary_at_boot=1    the stack canary is dead from the start
//   op_ticks=N          ticks that one kernel takes
//   byte_ticks=N        ticks that one byte of output takes
//   ticks_per_second=N
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "arena.h"
#include "board.h"
#include "forge_config.h"
#include "forge_status.h"
#include "host_model.h"
#include "op_resolver.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"

int FirmwareMain();

namespace {

constexpr int kExitOfReset = 70;

int g_argument_count;
char** g_arguments;
uint64_t g_ticks;
int g_invocations;
int g_operator;  // that runs, from 0
int g_variable_tensor;
bool g_canary = true;

// Value of name=number on the command line, 0 when it is not there.
int Setting(const char* name) {
  const std::string start = std::string(name) + "=";
  for (int i = 2; i < g_argument_count; ++i) {
    if (std::strncmp(g_arguments[i], start.c_str(), start.size()) == 0) {
      return std::atoi(g_arguments[i] + start.size());
    }
  }
  return 0;
}

void WriteAll(const uint8_t* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(STDOUT_FILENO, data, size);
    if (written <= 0) std::exit(0);
    data += written;
    size -= static_cast<size_t>(written);
  }
}

void Fault(forge::Status kind) {
  static forge::FaultRecord record;
  record = {static_cast<uint32_t>(kind), 0x1001, 0x2002, 0x3003, 0x4004, 0x5005, 0x6006, 0x7007};
  ForgeFault(record);
}

TfLiteStatus Prepare(TfLiteContext*, TfLiteNode*) {
  ++g_operator;
  if (g_operator == Setting("prepare_aborts")) Fault(forge::Status::kAborted);
  return g_operator == Setting("prepare_fails") ? kTfLiteError : kTfLiteOk;
}

TfLiteStatus Invoke(TfLiteContext*, TfLiteNode*) {
  g_ticks += Setting("op_ticks");
  if (g_invocations == Setting("invoke_faults")) Fault(forge::Status::kFault);
  return g_invocations == Setting("invoke_fails") ? kTfLiteError : kTfLiteOk;
}

const tflite::MicroOpResolver* g_resolver;

TfLiteStatus InvokeNested(TfLiteContext* context, TfLiteNode* node) {
  g_resolver->FindOp(static_cast<tflite::BuiltinOperator>(25))->invoke(context, node);
  return Invoke(context, node);
}

constexpr int kBytes = 1000;
int8_t g_input0[kBytes], g_output0[kBytes];
float g_input1[5], g_output1[5];
bool g_input2[3], g_output2[3];
TfLiteIntArray g_dims0 = {2, {1, kBytes}};
TfLiteIntArray g_dims1 = {1, {5}};
TfLiteIntArray g_dims2 = {1, {3}};

TfLiteTensor g_inputs[3], g_outputs[3];

TfLiteTensor MakeTensor(void* data, size_t bytes, TfLiteIntArray* dims, TfLiteType type) {
  TfLiteTensor tensor = {};
  tensor.data.data = data;
  tensor.bytes = bytes;
  tensor.dims = dims;
  tensor.type = type;
  if (type == kTfLiteInt8) tensor.params = {0.5f, -3};
  return tensor;
}

}  // namespace

namespace tflite {

MicroAllocator* MicroAllocator::Create(uint8_t*, size_t, MemoryPlannerType) {
  static MicroAllocator allocator;
  return &allocator;
}
size_t MicroAllocator::used_bytes() const { return static_cast<size_t>(Setting("arena_used")); }

MicroResourceVariables g_variables;

MicroResourceVariables* MicroResourceVariables::Create(MicroAllocator*, int count) {
  g_variables.count = count;
  return &g_variables;
}

TfLiteStatus MicroResourceVariables::ResetAll() {
  value = 0;
  return kTfLiteOk;
}

MicroInterpreter::MicroInterpreter(const Model* model, const MicroOpResolver& resolver,
                                   MicroAllocator*, MicroResourceVariables*)
    : MicroInterpreter(model, resolver, nullptr, 0, nullptr, nullptr, true) {}

MicroInterpreter::MicroInterpreter(const Model*, const MicroOpResolver& resolver, uint8_t*, size_t,
                                   MicroResourceVariables*, void*, bool)
    : resolver_(resolver) {
  g_resolver = &resolver;
  g_inputs[0] = MakeTensor(g_input0, sizeof(g_input0), &g_dims0, kTfLiteInt8);
  g_inputs[1] = MakeTensor(g_input1, sizeof(g_input1), &g_dims1, kTfLiteFloat32);
  g_inputs[2] = MakeTensor(g_input2, sizeof(g_input2), &g_dims2, kTfLiteBool);
  g_outputs[0] = MakeTensor(g_output0, sizeof(g_output0), &g_dims0, kTfLiteInt8);
  g_outputs[1] = MakeTensor(g_output1, sizeof(g_output1), &g_dims1, kTfLiteFloat32);
  g_outputs[2] = MakeTensor(g_output2, sizeof(g_output2), &g_dims2, kTfLiteBool);
}

namespace {

const TFLMRegistration* RegistrationOf(const MicroOpResolver& resolver, int number) {
  if (number == 2) return resolver.FindOp("Fake");
  return resolver.FindOp(static_cast<BuiltinOperator>(number == 1 ? 25 : 9));
}

}  // namespace

TfLiteStatus MicroInterpreter::AllocateTensors() {
  for (int i = 0; i < 4; ++i) {
    if (RegistrationOf(resolver_, i)->prepare(nullptr, nullptr) != kTfLiteOk) return kTfLiteError;
  }
  return Setting("allocate_fails") != 0 ? kTfLiteError : kTfLiteOk;
}

TfLiteStatus MicroInterpreter::Invoke() {
  ++g_invocations;
  const std::string line = "invoke " + std::to_string(g_invocations) + "\r\n";
  WriteAll(reinterpret_cast<const uint8_t*>(line.data()), line.size());
  for (int i = 0; i < 4; ++i) {
    if (RegistrationOf(resolver_, i)->invoke(nullptr, nullptr) != kTfLiteOk) return kTfLiteError;
  }
  for (int i = 0; i < 3; ++i) {
    std::memcpy(g_outputs[i].data.data, g_inputs[i].data.data, g_inputs[i].bytes);
    std::memset(g_inputs[i].data.data, 1, g_inputs[i].bytes);
  }
  // Both kinds of state must be reset for the same output to come again.
  if (Setting("stateful") != 0) {
    g_output0[0] =
        static_cast<int8_t>(g_output0[0] + g_variables.value++ + 10 * g_variable_tensor++);
  }
  if (g_invocations == Setting("drift")) g_output0[kBytes - 1] ^= 1;
  if (g_invocations == Setting("canary")) g_canary = false;
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::Reset() {
  g_variable_tensor = 0;
  return kTfLiteOk;
}

// Tensors of the model that the tests make: 1 to 4 are the operators' outputs. Number 2 has no
// data, number 3 no size.
TfLiteEvalTensor* MicroInterpreter::GetTensor(int tensor_index, int) {
  static TfLiteEvalTensor tensor;
  tensor.data.data = tensor_index == 2 ? nullptr : g_outputs[tensor_index % 3].data.data;
  tensor.index = tensor_index;
  return &tensor;
}

TfLiteStatus TfLiteEvalTensorByteLength(const TfLiteEvalTensor* tensor, size_t* bytes) {
  *bytes = g_outputs[tensor->index % 3].bytes;
  return tensor->index == 3 ? kTfLiteError : kTfLiteOk;
}

TfLiteTensor* MicroInterpreter::input(size_t index) {
  return index < 3 ? &g_inputs[index] : nullptr;
}
TfLiteTensor* MicroInterpreter::output(size_t index) {
  return index < 3 ? &g_outputs[index] : nullptr;
}
size_t MicroInterpreter::inputs_size() const { return 3; }
size_t MicroInterpreter::outputs_size() const { return 3; }
size_t MicroInterpreter::arena_used_bytes() const { return 3000; }

}  // namespace tflite

namespace forge {

uint8_t g_tensor_arena[4096];
uint32_t ArenaBytes() { return sizeof(g_tensor_arena); }
void SetNextArenaBytes(uint32_t) {}

RegisterResult RegisterOps(OpResolver& resolver) {
  resolver.Add({Prepare, Invoke, 9, nullptr});
  resolver.Add({Prepare, Invoke, 25, nullptr});
  if (Setting("register_fails") != 0) return {kTfLiteError, 2};
  if (Setting("register_fewer") == 0) resolver.Add({Prepare, InvokeNested, 32, "Fake"});
  return {kTfLiteOk, -1};
}

void BoardInit() { g_canary = Setting("canary_at_boot") == 0; }

void UartWrite(const uint8_t* data, size_t size) {
  g_ticks += size * static_cast<size_t>(Setting("byte_ticks"));
  WriteAll(data, size);
}

// Waits for a byte, so that an idle device costs no time; the end of input ends the device.
int UartRead() {
  uint8_t byte;
  if (read(STDIN_FILENO, &byte, 1) != 1) std::exit(0);
  return byte;
}

uint64_t BoardTicks() { return g_ticks; }
uint32_t BoardTicksPerSecond() { return static_cast<uint32_t>(Setting("ticks_per_second")); }
CounterKind BoardCounterKind() { return CounterKind::kEmulatedTicks; }
uint8_t BoardResetCause() { return 2; }
void BoardReset() { std::exit(kExitOfReset); }
void BoardExit(int status) { std::exit(status); }
uint32_t StackSize() { return 2048; }
uint32_t StackHighWater() { return 777; }
bool StackCanaryIntact() { return g_canary; }

}  // namespace forge

int main(int argc, char** argv) {
  g_argument_count = argc;
  g_arguments = argv;
  if (argc < 2 || !LoadModel(argv[1])) return 2;
  return FirmwareMain();
}
