// What MicroInterpreter reads from a model.

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_log.h"

namespace tflite {
namespace {

// Indices and lifetimes are kept in 16 bits.
constexpr uint32_t kMaxCount = 0xFFFE;

const TfLiteIntArray kNoDimsArray = {0};
TfLiteIntArray* NoDims() { return const_cast<TfLiteIntArray*>(&kNoDimsArray); }

// So that no product of dimensions overflows in a kernel. -1 stands for a dimension that RESHAPE
// finds out.
bool IsSaneShape(const TfLiteIntArray& dims) {
  uint32_t elements = 1;
  for (int i = 0; i < dims.size; ++i) {
    const int dim = dims.data[i] <= 0 ? 1 : dims.data[i];
    if (dims.data[i] < -1 || static_cast<uint32_t>(dim) > kMaxPlannedBytes / elements) return false;
    elements *= dim;
  }
  return true;
}

// The core reads units of at most 4 bytes at once.
bool IsAligned(ModelPos pos, uint32_t element_bytes) {
  const uint32_t unit = element_bytes >= 4 ? 4 : element_bytes;
  return unit == 0 || (pos & (unit - 1)) == 0;
}

}  // namespace

// Leaves everything empty when the model is damaged; AllocateTensors() says so.
void MicroInterpreter::FindSubgraph() {
  ModelReader& model = context_of_kernels_.model_;
  const ModelPos root = model.Root();
  opcode_table_ = model.VectorField(root, field::kModelOpcodes, 4);
  context_of_kernels_.buffer_table_ = model.VectorField(root, field::kModelBuffers, 4);
  const ModelPos subgraphs = model.VectorField(root, field::kModelSubgraphs, 4);
  const ModelPos subgraph = model.TableAt(subgraphs, 0);
  if (model.VectorSize(subgraphs) != 1) {
    MicroPrintf("The model has %d subgraphs; this runtime runs models with one",
                static_cast<int>(model.VectorSize(subgraphs)));
    initialization_status_ = kTfLiteError;
  }
  context_of_kernels_.tensor_table_ = model.VectorField(subgraph, field::kSubgraphTensors, 4);
  operator_table_ = model.VectorField(subgraph, field::kSubgraphOperators, 4);
  const ModelPos inputs = model.VectorField(subgraph, field::kSubgraphInputs, 4);
  const ModelPos outputs = model.VectorField(subgraph, field::kSubgraphOutputs, 4);
  const uint32_t tensor_count = model.VectorSize(context_of_kernels_.tensor_table_);
  const uint32_t node_count = model.VectorSize(operator_table_);
  if (tensor_count > kMaxCount || node_count > kMaxCount) model.MarkDamaged(subgraph);
  if (!ModelIsSound()) {
    initialization_status_ = kTfLiteError;
    return;
  }
  inputs_ = model.IntArray(inputs);
  outputs_ = model.IntArray(outputs);
  tensor_count_ = static_cast<uint16_t>(tensor_count);
  node_count_ = static_cast<uint16_t>(node_count);
}

TfLiteStatus MicroInterpreter::LoadTensors() {
  MicroContext& kernels = context_of_kernels_;
  kernels.tensors_ = static_cast<TfLiteEvalTensor*>(kernels.allocator_->AllocatePersistentBuffer(
      tensor_count_ * sizeof(TfLiteEvalTensor), alignof(TfLiteEvalTensor)));
  if (kernels.tensors_ == nullptr) return kTfLiteError;
  for (int i = 0; i < tensor_count_; ++i) {
    const ModelPos table = kernels.model_.TableAt(kernels.tensor_table_, i);
    if (LoadTensor(table, &kernels.tensors_[i]) != kTfLiteOk) {
      MicroPrintf("Tensor %d can not be used", i);
      return kTfLiteError;
    }
  }
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::LoadTensor(ModelPos table, TfLiteEvalTensor* tensor) {
  ModelReader& model = context_of_kernels_.model_;
  const ModelPos shape = model.VectorField(table, field::kTensorShape, 4);
  const ModelPos data = context_of_kernels_.ConstantData(table);
  tensor->dims = shape == 0 ? NoDims() : model.IntArray(shape);
  tensor->type = TypeOfModel(model.ByteField(table, field::kTensorType));
  tensor->data.data = data == 0 ? nullptr : model.At<void>(data + 4);
  const uint32_t element_bytes = TfLiteTypeGetSize(tensor->type);
  if (!IsSaneShape(*tensor->dims)) model.MarkDamaged(shape);
  size_t bytes;
  if (data != 0 && (TfLiteEvalTensorByteLength(tensor, &bytes) != kTfLiteOk ||
                    bytes > model.VectorSize(data) || !IsAligned(data + 4, element_bytes))) {
    model.MarkDamaged(data);
  }
  return ModelIsSound() ? kTfLiteOk : kTfLiteError;
}

TfLiteStatus MicroInterpreter::LoadNodes() {
  ModelReader& model = context_of_kernels_.model_;
  nodes_ = static_cast<Node*>(context_of_kernels_.allocator_->AllocatePersistentBuffer(
      node_count_ * sizeof(Node), alignof(Node)));
  if (nodes_ == nullptr) return kTfLiteError;
  for (int i = 0; i < node_count_; ++i) {
    Node& node = nodes_[i];
    node = {nullptr, nullptr, model.TableAt(operator_table_, i)};
    TF_LITE_ENSURE_STATUS(FindRegistration(node.table, &node.registration));
    LoadedNode loaded;
    Load(node, &loaded);
    if (!ModelIsSound()) return kTfLiteError;
    TF_LITE_ENSURE_STATUS(CheckIndices(loaded.node.inputs, kTfLiteOptionalTensor));
    TF_LITE_ENSURE_STATUS(CheckIndices(loaded.node.outputs, 0));
    TF_LITE_ENSURE_STATUS(CheckIndices(loaded.node.intermediates, kTfLiteOptionalTensor));
  }
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::FindRegistration(ModelPos op,
                                                const TFLMRegistration** registration) {
  ModelReader& model = context_of_kernels_.model_;
  const ModelPos opcode =
      model.TableAt(opcode_table_, model.Int32Field(op, field::kOperatorOpcode));
  const int32_t old_code = model.ByteField(opcode, field::kOpcodeDeprecatedCode);
  const int32_t new_code = model.Int32Field(opcode, field::kOpcodeCode);
  const auto code = static_cast<BuiltinOperator>(new_code > old_code ? new_code : old_code);
  const char* custom_name = "";
  if (code == BuiltinOperator_CUSTOM) {
    custom_name = model.StringField(opcode, field::kOpcodeCustomName);
    if (custom_name == nullptr) model.MarkDamaged(opcode);
  }
  if (!ModelIsSound()) return kTfLiteError;
  *registration =
      code == BuiltinOperator_CUSTOM ? op_resolver_.FindOp(custom_name) : op_resolver_.FindOp(code);
  if (*registration != nullptr && (*registration)->invoke != nullptr) return kTfLiteOk;
  if (code > BuiltinOperator_MAX) {
    MicroPrintf("Op builtin_code out of range: %d.", static_cast<int>(code));
  } else if (code == BuiltinOperator_CUSTOM) {
    MicroPrintf("Didn't find custom op '%s'", custom_name);
  } else {
    MicroPrintf("Didn't find op for builtin opcode '%s'", EnumNameBuiltinOperator(code));
  }
  MicroPrintf("Failed to get registration from op code %s", EnumNameBuiltinOperator(code));
  return kTfLiteError;
}

TfLiteStatus MicroInterpreter::CheckIndices(const TfLiteIntArray* indices, int lowest) {
  for (size_t i = 0; i < SizeOf(indices); ++i) {
    if (indices->data[i] < lowest || indices->data[i] >= tensor_count_) {
      MicroPrintf("The model is damaged: there is no tensor %d", indices->data[i]);
      return kTfLiteError;
    }
  }
  return kTfLiteOk;
}

void MicroInterpreter::Load(const Node& node, LoadedNode* loaded) {
  ModelReader& model = context_of_kernels_.model_;
  TfLiteNode& result = loaded->node;
  result = {};
  result.inputs = model.IntArray(model.VectorField(node.table, field::kOperatorInputs, 4));
  result.outputs = model.IntArray(model.VectorField(node.table, field::kOperatorOutputs, 4));
  result.intermediates =
      model.IntArray(model.VectorField(node.table, field::kOperatorIntermediates, 4));
  if (result.inputs == nullptr) result.inputs = NoDims();
  if (result.outputs == nullptr) result.outputs = NoDims();
  result.user_data = node.user_data;
  const auto code = static_cast<BuiltinOperator>(node.registration->builtin_code);
  if (code == BuiltinOperator_CUSTOM) {
    const ModelPos options = model.VectorField(node.table, field::kOperatorCustomOptions, 1);
    if (options == 0) return;
    result.custom_initial_data = model.At<const void>(options + 4);
    result.custom_initial_data_size = static_cast<int>(model.VectorSize(options));
  } else if (const OptionsLayout* layout = op_resolver_.GetOpDataParser(code)) {
    ReadOptions(model, node.table, *layout, loaded->params);
    result.builtin_data = loaded->params;
  }
}

}  // namespace tflite
