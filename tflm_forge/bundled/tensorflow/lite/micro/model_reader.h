#ifndef TENSORFLOW_LITE_MICRO_MODEL_READER_H_
#define TENSORFLOW_LITE_MICRO_MODEL_READER_H_

#include <cstddef>
#include <cstdint>

#include "tensorflow/lite/c/common.h"

// An application that knows how long its models are defines this, and no damage of a model can then
// make the interpreter read outside it. TFLM's GetModel() takes no length: without this function
// the end of the model is taken to be the end of memory.
extern "C" __attribute__((weak)) size_t ModelBytes(const void* model);

namespace tflite {

// A place in the model, in bytes from its start. 0 is never a place: it means "absent".
using ModelPos = uint32_t;

// Reads a flatbuffer. Each access checks bounds and alignment; one that fails reads as absent or 0
// and is remembered, so that callers may look at damaged() once, after a series of reads.
class ModelReader {
 public:
  explicit ModelReader(const void* model);

  bool damaged() const { return damage_ != 0; }
  // Where the first failed access was.
  ModelPos damage() const { return damage_; }
  void MarkDamaged(ModelPos pos) {
    if (damage_ == 0) damage_ = pos == 0 ? 1 : pos;
  }

  ModelPos Root();
  // Field `id` of a table, `bytes` long; 0 when it has its default value.
  ModelPos Field(ModelPos table, int id, uint32_t bytes);
  int32_t Int32Field(ModelPos table, int id, int32_t default_value = 0);
  uint8_t ByteField(ModelPos table, int id);
  ModelPos TableField(ModelPos table, int id);
  // A vector of elements of `element_bytes`, all inside the model; 0 when absent.
  ModelPos VectorField(ModelPos table, int id, uint32_t element_bytes);

  uint32_t VectorSize(ModelPos vector) { return vector == 0 ? 0 : Word(vector); }
  // Element of a vector of 32-bit values, of the low half of 64-bit values, and of tables.
  int32_t Int32At(ModelPos vector, uint32_t index) { return Word(Element(vector, index, 4)); }
  int32_t Int64At(ModelPos vector, uint32_t index) { return Word(Element(vector, index, 8)); }
  ModelPos TableAt(ModelPos vector, uint32_t index) { return Follow(Element(vector, index, 4)); }

  // A vector of int32 or float in the model is laid out as the arrays of the C API are.
  TfLiteIntArray* IntArray(ModelPos vector) {
    return vector == 0 ? nullptr : At<TfLiteIntArray>(vector);
  }
  TfLiteFloatArray* FloatArray(ModelPos vector) { return At<TfLiteFloatArray>(vector); }
  template <typename T>
  T* At(ModelPos pos) const {
    return const_cast<T*>(reinterpret_cast<const T*>(base_ + pos));
  }
  // A string that is known to end with a zero; null when absent.
  const char* StringField(ModelPos table, int id);

 private:
  bool Check(ModelPos pos, uint32_t bytes, uint32_t alignment);
  uint32_t Word(ModelPos pos);
  ModelPos Follow(ModelPos pos);
  ModelPos Element(ModelPos vector, uint32_t index, uint32_t element_bytes);

  const uint8_t* base_;
  uint32_t size_;
  ModelPos damage_ = 0;
};

// Field numbers of the schema's tables.
namespace field {
enum Model : int { kModelVersion = 0, kModelOpcodes = 1, kModelSubgraphs = 2, kModelBuffers = 4 };
enum Subgraph : int { kSubgraphTensors = 0, kSubgraphInputs, kSubgraphOutputs, kSubgraphOperators };
enum Buffer : int { kBufferData = 0, kBufferOffset };
enum Opcode : int { kOpcodeDeprecatedCode = 0, kOpcodeCustomName, kOpcodeVersion, kOpcodeCode };
enum Tensor : int {
  kTensorShape = 0,
  kTensorType = 1,
  kTensorBuffer = 2,
  kTensorQuantization = 4,
  kTensorIsVariable = 5
};
enum Quantization : int {
  kQuantizationScale = 2,
  kQuantizationZeroPoint = 3,
  kQuantizationDimension = 6
};
enum Operator : int {
  kOperatorOpcode = 0,
  kOperatorInputs = 1,
  kOperatorOutputs = 2,
  kOperatorOptionsType = 3,
  kOperatorOptions = 4,
  kOperatorCustomOptions = 5,
  kOperatorIntermediates = 8
};
}  // namespace field

// The C API's type of a schema TensorType; kTfLiteNoType when there is none.
TfLiteType TypeOfModel(uint8_t tensor_type);

// How the options table of an op fills its struct of builtin_op_data.h.
struct OptionField {
  enum Kind : uint8_t { kWord, kBool, kPadding, kActivation, kWeightsFormat, kType };
  uint8_t id;
  uint8_t offset;
  Kind kind;
  uint8_t default_value;
};
struct OptionsLayout {
  uint8_t options_type;
  uint8_t field_count;
  const OptionField* fields;
};

constexpr size_t kMaxParamsBytes = 48;

// Zeroes `params` and fills it from the operator's options. A value that the schema does not have
// counts as damage.
void ReadOptions(ModelReader& model, ModelPos op, const OptionsLayout& layout,
                 uint8_t (&params)[kMaxParamsBytes]);

extern const OptionsLayout kConv2DOptions;
extern const OptionsLayout kDepthwiseConv2DOptions;
extern const OptionsLayout kPool2DOptions;
extern const OptionsLayout kFullyConnectedOptions;
extern const OptionsLayout kSoftmaxOptions;
extern const OptionsLayout kAddOptions;

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MODEL_READER_H_
