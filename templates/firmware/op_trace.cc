#include "op_trace.h"

#include <utility>

#include "board.h"
#include "device.h"
#include "link.h"

namespace forge {
namespace {

struct Collector {
  BodyWriter* out;
  uint32_t from;
};

using KernelCall = TfLiteStatus (*)(TfLiteContext*, TfLiteNode*);

const TFLMRegistration* g_originals[kOpCount];
CurrentOpRecord g_current = {-1, 0};
Collector g_collector;

TfLiteStatus CallKernel(int op, KernelCall call, TfLiteContext* context, TfLiteNode* node) {
  // Operators of a subgraph that an operator calls do not count on their own.
  const int caller = g_current.op;
  g_current.op = op;
  const uint64_t start = BoardTicks() - ReportingTicks();
  const TfLiteStatus status = call(context, node);
  const uint64_t ticks = BoardTicks() - ReportingTicks() - start;
  // After a failure the record keeps naming the op that failed.
  if (status != kTfLiteOk) return status;
  g_current.op = caller;
  if (caller < 0) {
    if (g_collector.out != nullptr && g_current.position >= g_collector.from) {
      g_collector.out->Put64(ticks);
    }
    ++g_current.position;
  }
  KeepAlive();
  return status;
}

// A kernel is not told which op it was registered for, so each op has a function of its own.
template <int kOp>
TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  return CallKernel(kOp, g_originals[kOp]->prepare, context, node);
}

template <int kOp>
TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  return CallKernel(kOp, g_originals[kOp]->invoke, context, node);
}

struct Hooks {
  KernelCall prepare, invoke;
};

template <int... kOp>
const Hooks* HooksOf(std::integer_sequence<int, kOp...>) {
  static constexpr Hooks kHooks[] = {Hooks{Prepare<kOp>, Invoke<kOp>}...};
  return kHooks;
}

}  // namespace

TracedResolver::TracedResolver(const tflite::MicroOpResolver& resolver) : resolver_(resolver) {
  const Hooks* hooks = HooksOf(std::make_integer_sequence<int, kOpCount>());
  for (int i = 0; i < kOpCount; ++i) {
    const OpEntry& op = kOps[i];
    g_originals[i] = op.custom_name[0] != 0
                         ? resolver.FindOp(op.custom_name)
                         : resolver.FindOp(static_cast<tflite::BuiltinOperator>(op.builtin_code));
    registrations_[i] = *g_originals[i];
    if (registrations_[i].prepare != nullptr) registrations_[i].prepare = hooks[i].prepare;
    if (registrations_[i].invoke != nullptr) registrations_[i].invoke = hooks[i].invoke;
  }
}

const TFLMRegistration* TracedResolver::FindOp(tflite::BuiltinOperator op) const {
  return Traced(resolver_.FindOp(op));
}

const TFLMRegistration* TracedResolver::FindOp(const char* op) const {
  return Traced(resolver_.FindOp(op));
}

tflite::TfLiteBridgeBuiltinParseFunction TracedResolver::GetOpDataParser(
    tflite::BuiltinOperator op) const {
  return resolver_.GetOpDataParser(op);
}

const TFLMRegistration* TracedResolver::Traced(const TFLMRegistration* original) const {
  for (int i = 0; i < kOpCount; ++i) {
    if (g_originals[i] == original) return &registrations_[i];
  }
  return nullptr;
}

const CurrentOpRecord& CurrentOp() { return g_current; }

TfLiteStatus RunInference() {
  g_current = {-1, 0};
  return g_device.interpreter->Invoke();
}

void CollectOpTicks(BodyWriter* out, uint32_t from) { g_collector = {out, from}; }

}  // namespace forge
