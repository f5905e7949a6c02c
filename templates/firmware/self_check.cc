#include "self_check.h"

#include <cstring>

#include "forge_config.h"

namespace forge {
namespace {

const OpEntry* FindEntry(const OpUse& op) {
  for (const OpEntry& entry : kOps) {
    if (entry.builtin_code == op.builtin_code &&
        std::strcmp(entry.custom_name, op.custom_name) == 0) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace

const TFLMRegistration* FindRegistration(const tflite::MicroOpResolver& resolver,
                                         int32_t builtin_code, const char* custom_name) {
  if (custom_name[0] != 0) return resolver.FindOp(custom_name);
  return resolver.FindOp(static_cast<tflite::BuiltinOperator>(builtin_code));
}

bool NextOffender(const ModelWalk& model, const OpResolver& resolver, Offender* offender) {
  while (model.Next(&offender->op)) {
    const OpUse& op = offender->op;
    const OpEntry* entry = FindEntry(op);
    const bool registered =
        entry != nullptr && FindRegistration(resolver, op.builtin_code, op.custom_name) != nullptr;
    offender->supported_version = registered ? entry->max_version : 0;
    if (!registered || op.version > entry->max_version) return true;
  }
  return false;
}

const char* NameOfOp(const OpUse& op) {
  const OpEntry* entry = FindEntry(op);
  return entry == nullptr ? nullptr : entry->name;
}

}  // namespace forge
