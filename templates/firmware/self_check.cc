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

bool IsRegistered(const OpResolver& resolver, int32_t builtin_code, const char* custom_name) {
  // The interface of the base class: a resolver that hides one of the two overloads still has both.
  const tflite::MicroOpResolver& base = resolver;
  if (custom_name[0] != 0) return base.FindOp(custom_name) != nullptr;
  return base.FindOp(static_cast<tflite::BuiltinOperator>(builtin_code)) != nullptr;
}

}  // namespace

Status CheckRegistration(OpResolver& resolver) {
  if (RegisterOps(resolver).status != kTfLiteOk) return Status::kRegisterFailed;
  if (resolver.GetRegistrationLength() != kOpCount) return Status::kRegisterCount;
  for (const OpEntry& entry : kOps) {
    if (!IsRegistered(resolver, entry.builtin_code, entry.custom_name)) {
      return Status::kRegisterFailed;
    }
  }
  return Status::kOk;
}

Status CheckOps(const ModelWalk& model, const OpResolver& resolver) {
  Status status = model.op_hash() == kOpHash ? Status::kOk : Status::kOpHash;
  for (Offender offender; NextOffender(model, resolver, &offender);) {
    // A missing op says more than a version, and both say more than the hash.
    if (offender.supported_version == 0) return Status::kOpMissing;
    status = Status::kOpVersion;
  }
  return status;
}

bool NextOffender(const ModelWalk& model, const OpResolver& resolver, Offender* offender) {
  while (model.Next(&offender->op)) {
    const OpUse& op = offender->op;
    const OpEntry* entry = FindEntry(op);
    const bool registered =
        entry != nullptr && IsRegistered(resolver, op.builtin_code, op.custom_name);
    offender->supported_version = registered ? entry->max_version : 0;
    if (op.version > offender->supported_version) return true;
  }
  return false;
}

const char* NameOfOp(const OpUse& op) {
  const OpEntry* entry = FindEntry(op);
  return entry == nullptr ? nullptr : entry->name;
}

}  // namespace forge
