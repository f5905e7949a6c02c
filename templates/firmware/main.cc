// The boot, in the order of docs/firmware.md. A step that fails blocks inference, never the link.
#include <cstddef>
#include <cstdint>
#include <new>

#include "arena.h"
#include "board.h"
#include "device.h"
#include "forge_config.h"
#include "interpreter.h"
#include "link.h"
#include "model_data.h"
#include "models.h"
#include "op_trace.h"
#include "self_check.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "text.h"

namespace forge {

Device g_device = {};

namespace {

constexpr const char* kStepNames[kBootSteps] = {"board", "model", "registration", "self-check",
                                                "allocation"};

// Made when its step comes, so that no constructor runs before the boot.
alignas(OpResolver) uint8_t g_resolver[sizeof(OpResolver)];

Status BoardStep() {
  g_device.reset_cause = BoardResetCause();
  return StackCanaryIntact() ? Status::kOk : Status::kStackCanary;
}

Status ModelStep() {
  Status status;
  uint32_t index = 0;
  do {
    status = OpenModel(index);
    PrintLine("model %u B, %u ops, hash 0x%x", BytesOfModel(index), g_device.model.op_count(),
              g_device.model.op_hash());
  } while (status == Status::kOk && ++index < kModelCount);
  return status;
}

Status RegistrationStep() {
  OpResolver* resolver = new (g_resolver) OpResolver();
  if (RegisterOps(*resolver).status != kTfLiteOk) return Status::kRegisterFailed;
  if (resolver->GetRegistrationLength() != kOpCount) return Status::kRegisterCount;
  if (!InstallOpTrace(*resolver)) return Status::kRegisterFailed;
  g_device.resolver = resolver;
  return Status::kOk;
}

void PrintOffender(const Offender& offender) {
  const OpUse& op = offender.op;
  const char* name = NameOfOp(op);
  if (name == nullptr) name = op.custom_name;
  PrintLine("self-check: op %u %s version %u, supported %u", static_cast<uint32_t>(op.builtin_code),
            name, op.version, offender.supported_version);
}

Status CheckModel(uint32_t index) {
  Status status = g_device.model.op_hash() == OpHashOfModel(index) ? Status::kOk : Status::kOpHash;
  for (Offender offender; NextOffender(g_device.model, *g_device.resolver, &offender);) {
    PrintOffender(offender);
    // A missing op says more than a version, and both say more than the hash.
    if (status != Status::kOpMissing) {
      status = offender.supported_version == 0 ? Status::kOpMissing : Status::kOpVersion;
    }
  }
  return status;
}

Status SelfCheckStep() {
  SelectModel(0);
  Status status = CheckModel(0);
  for (uint32_t i = 1; i < kModelCount; ++i) {
    SelectModel(i);
    const Status of_model = CheckModel(i);
    if (status == Status::kOk) status = of_model;
  }
  if (status == Status::kOk) PrintLine("self-check: ok");
  return status;
}

void PrintCurrentOp(const char* what) {
  const CurrentOpRecord& current = CurrentOp();
  if (current.op == 0) return;
  PrintLine("%s in %s, operator %u", what, kOps[current.op - 1].name, current.position);
}

Status AllocationStep() {
  tflite::MicroInterpreter* interpreter;
  uint32_t index = 0;
  do {
    SelectModel(index);
    interpreter = MakeInterpreter(*g_device.resolver);
    if (interpreter == nullptr || interpreter->AllocateTensors() != kTfLiteOk) {
      PrintCurrentOp("allocation: failed");
      // No op has failed: what is left is the memory itself.
      return CurrentOp().op == 0 ? Status::kArenaTooSmall : Status::kAllocateFailed;
    }
  } while (++index < kModelCount);
  g_device.arena_used_bytes = static_cast<uint32_t>(interpreter->arena_used_bytes());
  PrintLine("arena %u of %u B", g_device.arena_used_bytes, ArenaBytes());
  g_device.interpreter = interpreter;
  return Status::kOk;
}

constexpr Status (*kSteps[kBootSteps])() = {BoardStep, ModelStep, RegistrationStep, SelfCheckStep,
                                            AllocationStep};

void RunBoot() {
  for (Status& status : g_device.steps) status = Status::kNotRun;
  g_device.booting = true;
  BoardInit();
  PrintLine("\r\nforge %s board %s runtime %s %s", kForgeVersion, kBoardName, kRuntimeName,
            kRuntimeVersion);
  const char* verdict = "ready";
  for (uint32_t step = 0; step < kBootSteps; ++step) {
    g_device.current_step = static_cast<uint8_t>(step);
    const Status status = kSteps[step]();
    g_device.steps[step] = status;
    if (status == Status::kOk) continue;
    PrintLine("%s: status 0x%x", kStepNames[step], static_cast<uint32_t>(status));
    verdict = "blocked";
    break;
  }
  SelectModel(0);
  g_device.booting = false;
  PrintLine(verdict);
}

}  // namespace
}  // namespace forge

// The bundled runtime asks it how far it may read; TFLM does not.
extern "C" size_t ModelBytes(const void* model) {
  if constexpr (forge::kModelCount > 1) {
    for (const forge::BuiltInModel& each : forge::kModels) {
      if (model == each.data) return *each.bytes;
    }
  } else if (model == g_model_data) {
    return g_model_data_len;
  }
  return SIZE_MAX;
}

extern "C" void ForgeFault(const forge::FaultRecord& record) {
  using forge::g_device;
  // A fault in the report of a fault: rather a reset than a loop.
  if (g_device.fault != nullptr) forge::BoardReset();
  g_device.fault = &record;
  if (g_device.booting) {
    g_device.steps[g_device.current_step] = static_cast<forge::Status>(record.kind);
  }
  forge::PrintLine("\r\nfault: pc=0x%x lr=0x%x cfsr=0x%x", record.pc, record.lr, record.cfsr);
  forge::PrintCurrentOp("fault");
  forge::AnswerFault(record);
  forge::ServeLink();
}

int main() {
  forge::RunBoot();
  forge::ServeLink();
}
