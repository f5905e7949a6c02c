#include "op_trace.h"

#include <utility>

#include "device.h"
#include "link.h"
#include "message.h"
#include "self_check.h"

namespace forge {
namespace {

using KernelCall = TfLiteStatus (*)(TfLiteContext*, TfLiteNode*);

// For each op of kOps its Prepare and its Invoke, in this order.
constexpr int kHookCount = 2 * kOpCount;
// One object, because each costs its address in every function that uses it.
struct {
  CurrentOpRecord current;
  uint32_t first_to_collect;  // number from 1, 0 when none is
  KernelCall kernels[kHookCount];
} g_trace;

TfLiteStatus CallKernel(TfLiteContext* context, TfLiteNode* node, int hook) {
  // Operators of a subgraph that an operator calls do not count on their own.
  const int caller = g_trace.current.op;
  g_trace.current.op = hook / 2 + 1;
  const uint64_t start = InferenceTicks();
  const TfLiteStatus status = g_trace.kernels[hook](context, node);
  const uint64_t ticks = InferenceTicks() - start;
  // After a failure the record keeps naming the op that failed.
  if (status != kTfLiteOk) return status;
  g_trace.current.op = caller;
  if (caller == 0) {
    const uint32_t number = ++g_trace.current.position;
    if (number > g_trace.first_to_collect - 1) PutBytes(&ticks, sizeof(ticks));
  }
  KeepAlive();
  return status;
}

// A kernel is not told which op it was registered for, so each has a function of its own.
template <int kHook>
TfLiteStatus Hook(TfLiteContext* context, TfLiteNode* node) {
  return CallKernel(context, node, kHook);
}

template <int... kHook>
const KernelCall* AllHooks(std::integer_sequence<int, kHook...>) {
  static constexpr KernelCall kHooks[] = {Hook<kHook>...};
  return kHooks;
}

void PutHook(KernelCall* kernel, int hook) {
  g_trace.kernels[hook] = *kernel;
  if (*kernel != nullptr) *kernel = AllHooks(std::make_integer_sequence<int, kHookCount>())[hook];
}

}  // namespace

bool InstallOpTrace(OpResolver& resolver) {
  for (int i = 0; i < kOpCount; ++i) {
    // The resolver keeps copies of the kernels' registrations; only its interface says const.
    auto* registration = const_cast<TFLMRegistration*>(
        FindRegistration(resolver, kOps[i].builtin_code, kOps[i].custom_name));
    if (registration == nullptr) return false;
    PutHook(&registration->prepare, 2 * i);
    PutHook(&registration->invoke, 2 * i + 1);
  }
  return true;
}

const CurrentOpRecord& CurrentOp() { return g_trace.current; }

TfLiteStatus RunInference() {
  g_trace.current = {0, 0};
  return g_device.interpreter->Invoke();
}

void CollectOpTicks(uint32_t first) { g_trace.first_to_collect = first; }

}  // namespace forge
