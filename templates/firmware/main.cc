// The boot, in the order of docs/firmware.md: a step that fails blocks inference, but never the
// link.
#include <cstdint>
#include <new>

#include "arena.h"
#include "board.h"
#include "device.h"
#include "forge_config.h"
#include "link.h"
#include "model_data.h"
#include "op_trace.h"
#include "self_check.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "text.h"

namespace forge {

Device g_device;

namespace {

constexpr const char* kStepNames[kBootSteps] = {"board", "model", "registration", "self-check",
                                                "allocation"};

// Objects are made in storage of their own when their step comes: no constructor runs before the
// boot.
template <typename T>
struct Storage {
  alignas(T) uint8_t bytes[sizeof(T)];
};

Storage<OpResolver> g_resolver;
Storage<TracedResolver> g_traced_resolver;
Storage<tflite::MicroInterpreter> g_interpreter;

Status BoardStep() {
  g_device.reset_cause = BoardResetCause();
  return StackCanaryIntact() ? Status::kOk : Status::kStackCanary;
}

Status ModelStep() {
  const Status status = g_device.model.Open(g_model_data, g_model_data_len);
  Print("model %lu B, %lu ops, hash 0x%08lX\r\n", static_cast<unsigned long>(g_model_data_len),
        static_cast<unsigned long>(g_device.model.op_count()),
        static_cast<unsigned long>(g_device.model.op_hash()));
  return status;
}

Status RegistrationStep() {
  OpResolver* resolver = new (g_resolver.bytes) OpResolver();
  const Status status = CheckRegistration(*resolver);
  if (status == Status::kOk) g_device.resolver = resolver;
  return status;
}

void PrintOffender(const Offender& offender) {
  const OpUse& op = offender.op;
  const char* name = NameOfOp(op);
  if (name == nullptr) name = op.custom_name;
  Print("self-check: op %ld %s version %lu, supported %lu\r\n", static_cast<long>(op.builtin_code),
        name, static_cast<unsigned long>(op.version),
        static_cast<unsigned long>(offender.supported_version));
}

Status SelfCheckStep() {
  const Status status = CheckOps(g_device.model, *g_device.resolver);
  for (Offender offender; NextOffender(g_device.model, *g_device.resolver, &offender);) {
    PrintOffender(offender);
  }
  return status;
}

void PrintCurrentOp(const char* what) {
  const CurrentOpRecord& current = CurrentOp();
  if (current.op < 0) return;
  Print("%s in op %s, operator %lu\r\n", what, kOps[current.op].name,
        static_cast<unsigned long>(current.position));
}

Status AllocationStep() {
  const TracedResolver* resolver = new (g_traced_resolver.bytes) TracedResolver(*g_device.resolver);
  auto* interpreter = new (g_interpreter.bytes) tflite::MicroInterpreter(
      tflite::GetModel(g_model_data), *resolver, g_tensor_arena, ArenaBytes());
  if (interpreter->AllocateTensors() != kTfLiteOk) {
    PrintCurrentOp("allocation: failed");
    // No op has failed: what is left is the memory itself.
    return CurrentOp().op < 0 ? Status::kArenaTooSmall : Status::kAllocateFailed;
  }
  g_device.arena_used_bytes = static_cast<uint32_t>(interpreter->arena_used_bytes());
  Print("arena %lu of %lu B\r\n", static_cast<unsigned long>(g_device.arena_used_bytes),
        static_cast<unsigned long>(ArenaBytes()));
  g_device.interpreter = interpreter;
  return Status::kOk;
}

constexpr Status (*kSteps[kBootSteps])() = {BoardStep, ModelStep, RegistrationStep, SelfCheckStep,
                                            AllocationStep};

void RunBoot() {
  for (Status& status : g_device.steps) status = Status::kNotRun;
  g_device.booting = true;
  BoardInit();
  Print("\r\nforge %s board %s runtime %s %s\r\n", kForgeVersion, kBoardName, kRuntimeName,
        kRuntimeVersion);
  for (uint32_t step = 0; step < kBootSteps; ++step) {
    g_device.current_step = static_cast<uint8_t>(step);
    const Status status = kSteps[step]();
    g_device.steps[step] = status;
    if (status != Status::kOk) {
      Print("%s: status 0x%02X\r\nblocked\r\n", kStepNames[step], static_cast<unsigned>(status));
      g_device.booting = false;
      return;
    }
  }
  g_device.booting = false;
  Print("ready\r\n");
}

}  // namespace
}  // namespace forge

extern "C" void ForgeFault(const forge::FaultRecord& record) {
  using forge::g_device;
  // A fault while a fault is reported: its record stays, and the device starts anew rather than
  // loop.
  if (g_device.fault != nullptr) forge::BoardReset();
  g_device.fault = &record;
  if (g_device.booting) {
    g_device.steps[g_device.current_step] = static_cast<forge::Status>(record.kind);
  }
  forge::Print("\r\nfault: pc=0x%08lx lr=0x%08lx cfsr=0x%08lx\r\n",
               static_cast<unsigned long>(record.pc), static_cast<unsigned long>(record.lr),
               static_cast<unsigned long>(record.cfsr));
  forge::PrintCurrentOp("fault");
  forge::AnswerFault(record);
  forge::ServeLink();
}

int main() {
  forge::RunBoot();
  forge::ServeLink();
}
