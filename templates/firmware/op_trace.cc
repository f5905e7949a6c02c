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
KernelCall g_kernels[kHookCount];

CurrentOpRecord g_current = {-1, 0};
uint32_t g_collect_from = kCollectNothing;

TfLiteStatus CallKernel(TfLiteContext* context, TfLiteNode* node, int hook) {
  // Operators of a subgraph that an operator calls do not count on their own.
  const int caller = g_current.op;
  g_current.op = hook / 2;
  const uint64_t start = InferenceTicks();
  const TfLiteStatus status = g_kernels[hook](context, node);
  const uint64_t ticks = InferenceTicks() - start;
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
  g_kernels[hook] = *kernel;
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

const CurrentOpRecord& CurrentOp() { return g_current; }

TfLiteStatus RunInference() {
  g_current = {-1, 0};
  return g_device.interpreter->Invoke();
}

void CollectOpTicks(uint32_t from) { g_collect_from = from; }

}  // namespace forge
