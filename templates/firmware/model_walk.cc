#include "model_walk.h"

#include <cstring>

#include "crc32.h"

namespace forge {
namespace {

constexpr uint32_t kAlignment = 16;
constexpr uint32_t kSchemaVersion = 3;
constexpr uint32_t kIdentifier = 0x334C4654;  // TFL3
constexpr uint32_t kIdentifierEnd = 8;
constexpr int32_t kCustomCode = 32;

// Each step of Next() visits all operators: these two bound the time that a lying file can take.
constexpr uint32_t kMaxOperators = 4096;
constexpr uint32_t kMaxOps = 256;

// In the canonical op set, before the custom name: code, version, and one byte for the length.
constexpr uint32_t kOpHeadBytes = 9;

// Each table is paid for by its bytes, so a file whose vectors share no tables needs less than 1.
constexpr uint32_t kWorkPerByte = 4;

// The budget is looked at once a table: what one table's fields cost must not lead out of its type.
constexpr uint32_t kMaxBytes = INT32_MAX / 32;

// What is checked of one field, and an argument. Fields are in the order of TFLite's schema.
enum Kind : uint8_t {
  kInline = 0x00,      // a value in the table itself; argument: its bytes
  kIgnored = kInline,  // not read by any runtime for microcontrollers
  kVector = 0x10,      // of scalars; argument: bytes of one
  kString = 0x21,      // zero-terminated; the argument, always 1, is the bytes of a character
  kIndices = 0x30,     // vector of int32 tensor indices; argument 1: -1 is allowed
  kTables = 0x40,      // vector of tables; argument: kind of the tables
  kTable = 0x50,       // argument: kind of the table
  kOpcode = 0x60,      // index of an operator code
  kBuffer = 0x70,      // index of a buffer
  kRequired = 0x80,  // with any of these: the runtimes read it without looking whether it is there
};

// Greater than the name of any op with the greatest code.
constexpr char kAfterAllNames[] = "\xFF";

constexpr uint32_t kKindMask = 0x70;
constexpr uint32_t kArgumentMask = 0x0F;

using Table = ModelWalk::TableKind;

constexpr uint8_t kBuffersSpec = kRequired | kTables | Table::kBufferTable;

// The fields of all tables in the order of TableKind. Only their op knows the fields of options.
constexpr uint8_t kFields[] = {
    // model
    kInline | 4, kRequired | kTables | Table::kOperatorCode, kRequired | kTables | Table::kSubgraph,
    kIgnored, kBuffersSpec, kIgnored, kTables | Table::kMetadata,
    // operator code
    kInline | 1, kString, kInline | 4, kInline | 4,
    // buffer
    kVector | 1,
    // tensor
    kVector | 4, kIgnored, kBuffer, kString, kTable | Table::kQuantization, kIgnored, kIgnored,
    kVector | 4,
    // quantization
    kVector | 4, kVector | 4, kVector | 4, kVector | 8,
    // operator
    kOpcode, kRequired | kIndices | 1, kRequired | kIndices, kIgnored, kTable | Table::kOptions,
    kVector | 1, kIgnored, kVector | 1, kIndices | 1,
    // options
    // subgraph
    kRequired | kTables | Table::kTensor, kRequired | kIndices, kRequired | kIndices,
    kTables | Table::kOperator,
    // metadata
    kRequired | kString, kBuffer};

// Where the fields of each kind of table start; those of the next kind end them.
constexpr uint8_t kFirstField[] = {0, 7, 11, 12, 20, 24, 33, 33, 37, sizeof(kFields)};

static_assert(sizeof(kFirstField) == Table::kTableKinds + 1,
              "one entry for each kind, and the end");

// Fields that are read, by their numbers in the schema.
constexpr uint32_t kModelVersion = 0;
constexpr uint32_t kModelBuffers = 4;
constexpr uint32_t kSubgraphOperators = 3;
constexpr uint32_t kOperatorOpcode = 0;
constexpr uint32_t kOperatorOutputs = 2;
constexpr uint32_t kCodeDeprecated = 0;
constexpr uint32_t kCodeCustom = 1;
constexpr uint32_t kCodeVersion = 2;
constexpr uint32_t kCodeBuiltin = 3;

}  // namespace

__attribute__((noinline)) int CompareOps(const OpUse& left, const OpUse& right) {
  if (left.builtin_code != right.builtin_code) {
    return left.builtin_code < right.builtin_code ? -1 : 1;
  }
  // A shorter name that starts a longer one comes first: its zero is the smaller byte.
  return std::strcmp(left.custom_name, right.custom_name);
}

Status ModelWalk::Open(const uint8_t* data, uint32_t size) {
  data_ = data;
  size_ = size;
  budget_ = static_cast<int32_t>(size * kWorkPerByte);
  operators_ = 0;
  op_count_ = 0;
  op_hash_ = 0;
  if (reinterpret_cast<uintptr_t>(data) % kAlignment != 0) return Status::kModelMisaligned;
  if (size < kIdentifierEnd || size > kMaxBytes) return Status::kModelTruncated;
  if (Read32(4) != kIdentifier) return Status::kModelIdentifier;
  const uint32_t root = Read32(0);
  if (!CheckInline(root)) return Status::kModelTruncated;
  if (!CheckField(root, kModelVersion, kInline | 4)) return Status::kModelTruncated;
  const uint32_t version = Field(root, kModelVersion);
  if (version == 0 || Read32(version) != kSchemaVersion) return Status::kModelSchema;
  // Tensors refer to buffers, whose field comes after that of the subgraphs.
  const bool sound = CheckField(root, kModelBuffers, kBuffersSpec) && CheckTable(root, kModel) &&
                     Count(vectors_[kSubgraph]) > 0 && HashOps();
  return sound ? Status::kOk : Status::kModelTruncated;
}

bool ModelWalk::CheckTable(uint32_t table, uint32_t kind) {
  if (!CheckInline(table)) return false;
  const uint32_t first = kFirstField[kind];
  for (uint32_t i = first; i < kFirstField[kind + 1]; ++i) {
    if (!CheckField(table, i - first, kFields[i])) return false;
  }
  return true;
}

// Checks the table's own bytes and its vtable: that they are there, and that no field starts
// outside the table.
bool ModelWalk::CheckInline(uint32_t table) {
  if (table % 4 != 0 || table > size_ - 4) return false;
  const uint32_t vtable = table - Read32(table);
  if (vtable % 2 != 0 || vtable > size_ - 4) return false;
  const uint32_t vtable_bytes = Read16(vtable);
  const uint32_t table_bytes = Read16(vtable + 2);
  if (vtable_bytes < 4 || vtable_bytes % 2 != 0 || vtable_bytes > size_ - vtable) return false;
  if (table_bytes < 4 || table_bytes > size_ - table) return false;
  Charge(4 + vtable_bytes + table_bytes);
  return budget_ >= 0;
}

// Checks one field of a table that passed CheckInline.
bool ModelWalk::CheckField(uint32_t table, uint32_t field, uint32_t spec) {
  const uint32_t kind = spec & kKindMask;
  const uint32_t argument = spec & kArgumentMask;
  const uint32_t position = Field(table, field);
  uint32_t value = 0;
  if (position != 0) {
    const uint32_t bytes = kind == kInline ? argument : 4;
    const uint32_t table_bytes = Read16(table - Read32(table) + 2);
    if (position - table + bytes > table_bytes) return false;
    if (kind == kInline) return true;
    if (position % 4 != 0) return false;
    value = Read32(position);
  }
  if (kind == kOpcode) return value < Count(vectors_[kOperatorCode]);
  if (kind == kBuffer) return value < Count(vectors_[kBufferTable]);
  if (position == 0) return (spec & kRequired) == 0;
  if (value == 0 || value > size_ - position) return false;
  const uint32_t target = position + value;
  if (kind == kTable) return CheckTable(target, argument);
  if (!CheckVector(target, kind < kIndices ? argument : 4)) return false;
  if (kind == kVector) return true;
  Charge(Count(target));
  if (kind == kTables) return CheckTables(target, argument);
  return kind == kIndices ? CheckIndices(target, argument == 0 ? 0 : -1) : CheckString(target);
}

bool ModelWalk::CheckTables(uint32_t vector, uint32_t kind) {
  vectors_[kind] = vector;
  const uint32_t count = Count(vector);
  if (kind == kOperator && (operators_ += count) > kMaxOperators) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t position = vector + 4 + 4 * i;
    const uint32_t offset = Read32(position);
    if (offset == 0 || offset > size_ - position) return false;
    if (!CheckTable(position + offset, kind)) return false;
  }
  return true;
}

bool ModelWalk::CheckIndices(uint32_t vector, int32_t lowest) {
  const uint32_t count = Count(vector);
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t index = static_cast<int32_t>(Read32(vector + 4 + 4 * i));
    if (index < lowest || index >= static_cast<int32_t>(Count(vectors_[kTensor]))) return false;
  }
  return true;
}

// The zero behind the text is there, and none within: TFLM reads names as C strings.
bool ModelWalk::CheckString(uint32_t string) {
  const uint32_t length = Count(string);
  if (length >= size_ - string - 4 || data_[string + 4 + length] != 0) return false;
  return std::strlen(reinterpret_cast<const char*>(data_ + string + 4)) == length;
}

bool ModelWalk::CheckVector(uint32_t vector, uint32_t element_bytes) const {
  if (vector % 4 != 0 || vector > size_ - 4) return false;
  return Count(vector) <= (size_ - vector - 4) / element_bytes;
}

// Vectors that share their tables would let a small file cost quadratic time, so everything visited
// is paid for; CheckInline looks whether anything is left.
void ModelWalk::Charge(uint32_t work) { budget_ -= static_cast<int32_t>(work); }

bool ModelWalk::HashOps() {
  uint32_t count = 0;
  uint32_t hash = 0;
  for (OpUse op = kBeforeFirstOp; Next(&op);) {
    const uint32_t length = static_cast<uint32_t>(std::strlen(op.custom_name));
    if (++count > kMaxOps || length > UINT8_MAX) return false;
    const uint32_t head[3] = {static_cast<uint32_t>(op.builtin_code), op.version, length};
    hash = Crc32(hash, head, kOpHeadBytes);
    hash = Crc32(hash, op.custom_name, length);
  }
  op_count_ = count;
  op_hash_ = hash;
  return true;
}

bool ModelWalk::Next(OpUse* op) const {
  OpUse next = {INT32_MAX, 0, kAfterAllNames};
  for (uint32_t i = 0; i < Count(vectors_[kSubgraph]); ++i) {
    const uint32_t operators = Field(Element(vectors_[kSubgraph], i), kSubgraphOperators);
    if (operators == 0) continue;
    const uint32_t vector = Target(operators);
    for (uint32_t k = 0; k < Count(vector); ++k) {
      const OpUse use = OpOf(Element(vector, k));
      if (CompareOps(use, *op) <= 0) continue;
      const int order = CompareOps(use, next);
      if (order < 0 || (order == 0 && use.version > next.version)) next = use;
    }
  }
  *op = next;
  return next.custom_name != kAfterAllNames;
}

int32_t ModelWalk::OutputOf(uint32_t operator_index) const {
  const uint32_t operators = Field(Element(vectors_[kSubgraph], 0), kSubgraphOperators);
  if (operators == 0 || operator_index >= Count(Target(operators))) return -1;
  const uint32_t table = Element(Target(operators), operator_index);
  const uint32_t outputs = Target(Field(table, kOperatorOutputs));
  return Count(outputs) == 0 ? -1 : static_cast<int32_t>(Read32(outputs + 4));
}

OpUse ModelWalk::OpOf(uint32_t operator_table) const {
  const uint32_t index = Field(operator_table, kOperatorOpcode);
  const uint32_t code = Element(vectors_[kOperatorCode], index == 0 ? 0 : Read32(index));
  const uint32_t deprecated = Field(code, kCodeDeprecated);
  const uint32_t builtin = Field(code, kCodeBuiltin);
  const uint32_t version = Field(code, kCodeVersion);
  const uint32_t custom = Field(code, kCodeCustom);
  OpUse use;
  use.custom_name = "";
  // Old files hold the code in the byte alone, newer ones in both as far as it goes: the larger
  // one is meant.
  const int32_t old_code = deprecated == 0 ? 0 : static_cast<int8_t>(data_[deprecated]);
  const int32_t new_code = builtin == 0 ? 0 : static_cast<int32_t>(Read32(builtin));
  use.builtin_code = old_code > new_code ? old_code : new_code;
  use.version = version == 0 ? 1 : Read32(version);
  if (use.builtin_code == kCustomCode && custom != 0) {
    use.custom_name = reinterpret_cast<const char*>(data_ + Target(custom) + 4);
  }
  return use;
}

// Model and processor are both little-endian; memcpy because a vtable is aligned to two bytes only.
uint32_t ModelWalk::Read16(uint32_t position) const {
  uint16_t value;
  std::memcpy(&value, data_ + position, sizeof(value));
  return value;
}

uint32_t ModelWalk::Read32(uint32_t position) const {
  uint32_t value;
  std::memcpy(&value, data_ + position, sizeof(value));
  return value;
}

// Position of a field's value, 0 when the table does not hold it.
uint32_t ModelWalk::Field(uint32_t table, uint32_t field) const {
  const uint32_t vtable = table - Read32(table);
  const uint32_t entry = 4 + 2 * field;
  if (entry >= Read16(vtable)) return 0;
  const uint32_t offset = Read16(vtable + entry);
  return offset == 0 ? 0 : table + offset;
}

uint32_t ModelWalk::Target(uint32_t position) const { return position + Read32(position); }

uint32_t ModelWalk::Count(uint32_t vector) const { return Read32(vector); }

uint32_t ModelWalk::Element(uint32_t vector, uint32_t index) const {
  return Target(vector + 4 + 4 * index);
}

}  // namespace forge
