#include "op_trace.h"

#include <utility>

#include "board.h"
#include "device.h"
#include "link.h"
#include "message.h"
#include "self_check.h"

namespace forge {
namespace {

using KernelCall = TfLiteStatus (*)(TfLiteContext*, TfLiteNode*);

struct Hooks {
  KernelCall prepare, invoke;
};

Hooks g_originals[kOpCount];
CurrentOpRecord g_current = {-1, 0};
uint32_t g_collect_from = kCollectNothing;

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
    if (g_current.position >= g_collect_from) PutBytes(&ticks, sizeof(ticks));
    ++g_current.position;
  }
  KeepAlive();
  return status;
}

// A kernel is not told which op it was registered for, so each op has a function of its own.
template <int kOp>
TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  return CallKernel(kOp, g_originals[kOp].prepare, context, node);
}

template <int kOp>
TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  return CallKernel(kOp, g_originals[kOp].invoke, context, node);
}

template <int... kOp>
const Hooks* HooksOf(std::integer_sequence<int, kOp...>) {
  static constexpr Hooks kHooks[] = {Hooks{Prepare<kOp>, Invoke<kOp>}...};
  return kHooks;
}

}  // namespace

bool InstallOpTrace(OpResolver& resolver) {
  const Hooks* hooks = HooksOf(std::make_integer_sequence<int, kOpCount>());
  for (int i = 0; i < kOpCount; ++i) {
    // The resolver keeps copies of the kernels' registrations in itself; only its interface says
    // const.
    auto* registration = const_cast<TFLMRegistration*>(
        FindRegistration(resolver, kOps[i].builtin_code, kOps[i].custom_name));
    if (registration == nullptr) return false;
    g_originals[i] = {registration->prepare, registration->invoke};
    if (registration->prepare != nullptr) registration->prepare = hooks[i].prepare;
    if (registration->invoke != nullptr) registration->invoke = hooks[i].invoke;
  }
  return true;
}

const CurrentOpRecord& CurrentOp() { return g_current; }

TfLiteStatus RunInference() {
  g_current = {-1, 0};
  return g_device.interpreter->Invoke();
}

void CollectOpTicks(uint32_t from) { g_collect_from = from; }

}  // namespace forge
