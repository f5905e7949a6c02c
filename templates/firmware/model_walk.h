// Reads the model in flash without schema code and without memory of its own: checks that every
// offset stays inside its bytes, then lists the ops that its operators use.
#pragma once

#include <cstdint>

#include "forge_status.h"

namespace forge {

// One op of the model's op set.
struct OpUse {
  int32_t builtin_code;
  uint32_t version;         // the highest that an operator uses
  const char* custom_name;  // zero-terminated, in the model; empty for a builtin op
};

// Stands before the first.
constexpr OpUse kBeforeFirstOp = {INT32_MIN, 0, ""};

// Order of the canonical op set: by builtin code, then by the bytes of the custom name.
int CompareOps(const OpUse& left, const OpUse& right);

class ModelWalk {
 public:
  // Tables of TFLite's schema.
  enum TableKind : uint8_t {
    kModel,
    kOperatorCode,
    kBufferTable,
    kTensor,
    kQuantization,
    kOperator,
    kOptions,
    kSubgraph,
    kMetadata,
    kTableKinds,
  };

  // Checks the whole model; the other members may be used only when this returned kOk.
  Status Open(const uint8_t* data, uint32_t size);

  // Moves `op` on to the next op of the canonical op set; false at its end. Nothing is stored: each
  // step looks through all operators for the smallest op that is still greater.
  bool Next(OpUse* op) const;

  // First output of an operator of the main subgraph; -1 when there is none.
  int32_t OutputOf(uint32_t operator_index) const;

  uint32_t op_count() const { return op_count_; }

  // CRC-32 of the canonical op set; see docs/firmware.md.
  uint32_t op_hash() const { return op_hash_; }

 private:
  bool CheckTable(uint32_t table, uint32_t kind);
  bool CheckInline(uint32_t table);
  bool CheckField(uint32_t table, uint32_t field, uint32_t spec);
  bool CheckTables(uint32_t vector, uint32_t kind);
  bool CheckIndices(uint32_t vector, int32_t lowest);
  bool CheckVector(uint32_t vector, uint32_t element_bytes) const;
  bool CheckString(uint32_t string);
  void Charge(uint32_t work);
  bool HashOps();

  uint32_t Read16(uint32_t position) const;
  uint32_t Read32(uint32_t position) const;
  uint32_t Field(uint32_t table, uint32_t field) const;
  uint32_t Target(uint32_t position) const;
  uint32_t Count(uint32_t vector) const;
  uint32_t Element(uint32_t vector, uint32_t index) const;
  OpUse OpOf(uint32_t operator_table) const;

  const uint8_t* data_ = nullptr;
  uint32_t size_ = 0;
  int32_t budget_ = 0;      // work that is left; see Charge
  uint32_t operators_ = 0;  // operators seen by the check
  uint32_t op_count_ = 0;
  uint32_t op_hash_ = 0;
  uint32_t vectors_[kTableKinds] = {};  // by kind, the vector of tables that was checked last
};

}  // namespace forge
