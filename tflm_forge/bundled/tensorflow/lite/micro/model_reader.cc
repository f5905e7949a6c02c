#include "tensorflow/lite/micro/model_reader.h"

namespace tflite {
namespace {

// Positions stay below this, so that sums of two never wrap.
constexpr uint32_t kMaxModelBytes = 0x7FFFFFFF;
// The least that holds a root offset, its table and a vtable.
constexpr uint32_t kMinModelBytes = 12;

uint32_t LimitOf(const void* model) {
  if (model == nullptr) return 0;
  const size_t to_end_of_memory = ~reinterpret_cast<uintptr_t>(model);
  const size_t bytes = ModelBytes != nullptr ? ModelBytes(model) : to_end_of_memory;
  return bytes < kMaxModelBytes ? static_cast<uint32_t>(bytes) : kMaxModelBytes;
}

}  // namespace

ModelReader::ModelReader(const void* model)
    : base_(static_cast<const uint8_t*>(model)), size_(LimitOf(model)) {}

bool ModelReader::Check(ModelPos pos, uint32_t bytes, uint32_t alignment) {
  const bool inside = pos >= 4 && pos <= size_ && bytes <= size_ - pos;
  if (inside && (pos & (alignment - 1)) == 0) return true;
  MarkDamaged(pos);
  return false;
}

uint32_t ModelReader::Word(ModelPos pos) { return Check(pos, 4, 4) ? *At<const uint32_t>(pos) : 0; }

// An offset is counted from where it stands.
ModelPos ModelReader::Follow(ModelPos pos) {
  const uint32_t offset = Word(pos);
  if (offset == 0 || offset > size_) {
    MarkDamaged(pos);
    return 0;
  }
  return pos + offset;
}

ModelPos ModelReader::Root() {
  if (size_ < kMinModelBytes || (reinterpret_cast<uintptr_t>(base_) & 3) != 0) {
    MarkDamaged(0);
    return 0;
  }
  return *At<const uint32_t>(0);
}

ModelPos ModelReader::Field(ModelPos table, int id, uint32_t bytes) {
  if (table == 0 || !Check(table, 4, 4)) return 0;
  const uint32_t vtable = table - *At<const uint32_t>(table);
  if (!Check(vtable, 4, 2)) return 0;
  const uint16_t* entries = At<const uint16_t>(vtable);
  const uint32_t vtable_bytes = entries[0];
  const uint32_t table_bytes = entries[1];
  if (!Check(vtable, vtable_bytes, 2) || !Check(table, table_bytes, 4)) return 0;
  const uint32_t entry = 2 + static_cast<uint32_t>(id);
  if (2 * entry + 2 > vtable_bytes || entries[entry] == 0) return 0;
  const uint32_t offset = entries[entry];
  if (offset < 4 || offset + bytes > table_bytes) {
    MarkDamaged(table);
    return 0;
  }
  return Check(table + offset, bytes, bytes) ? table + offset : 0;
}

int32_t ModelReader::Int32Field(ModelPos table, int id, int32_t default_value) {
  const ModelPos pos = Field(table, id, 4);
  return pos == 0 ? default_value : *At<const int32_t>(pos);
}

uint8_t ModelReader::ByteField(ModelPos table, int id) {
  const ModelPos pos = Field(table, id, 1);
  return pos == 0 ? 0 : *At<const uint8_t>(pos);
}

ModelPos ModelReader::TableField(ModelPos table, int id) {
  const ModelPos pos = Field(table, id, 4);
  return pos == 0 ? 0 : Follow(pos);
}

ModelPos ModelReader::VectorField(ModelPos table, int id, uint32_t element_bytes) {
  const ModelPos vector = TableField(table, id);
  if (vector == 0 || !Check(vector, 4, 4)) return 0;
  const uint32_t count = *At<const uint32_t>(vector);
  if (count > size_ / element_bytes || !Check(vector + 4, count * element_bytes, 1)) {
    MarkDamaged(vector);
    return 0;
  }
  return vector;
}

ModelPos ModelReader::Element(ModelPos vector, uint32_t index, uint32_t element_bytes) {
  if (index >= VectorSize(vector)) {
    MarkDamaged(vector);
    return 0;
  }
  return vector + 4 + index * element_bytes;
}

const char* ModelReader::StringField(ModelPos table, int id) {
  const ModelPos vector = VectorField(table, id, 1);
  if (vector == 0) return nullptr;
  const ModelPos end = vector + 4 + *At<const uint32_t>(vector);
  if (!Check(end, 1, 1) || *At<const char>(end) != 0) {
    MarkDamaged(end);
    return nullptr;
  }
  return At<const char>(vector + 4);
}

TfLiteType TypeOfModel(uint8_t tensor_type) {
  static constexpr uint8_t kTypes[] = {
      kTfLiteFloat32, kTfLiteFloat16,    kTfLiteInt32,  kTfLiteUInt8,     kTfLiteInt64,
      kTfLiteString,  kTfLiteBool,       kTfLiteInt16,  kTfLiteComplex64, kTfLiteInt8,
      kTfLiteFloat64, kTfLiteComplex128, kTfLiteUInt64, kTfLiteResource,  kTfLiteVariant,
      kTfLiteUInt32,  kTfLiteUInt16,     kTfLiteInt4,   kTfLiteBFloat16,  kTfLiteInt2,
      kTfLiteUInt4};
  return tensor_type < sizeof(kTypes) ? static_cast<TfLiteType>(kTypes[tensor_type])
                                      : kTfLiteNoType;
}

}  // namespace tflite
