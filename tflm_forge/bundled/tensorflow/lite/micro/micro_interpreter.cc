#include "tensorflow/lite/micro/micro_interpreter.h"

#include <cstdarg>
#include <cstring>

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/micro_log.h"

namespace tflite {
namespace {

// Indices and lifetimes are kept in 16 bits.
constexpr uint32_t kMaxCount = 0xFFFE;

const TfLiteIntArray kNoDimsArray = {0};
TfLiteIntArray* NoDims() { return const_cast<TfLiteIntArray*>(&kNoDimsArray); }

void* AllocatePersistent(TfLiteContext* context, size_t bytes) {
  return GetMicroContext(context)->AllocatePersistentBuffer(bytes);
}

TfLiteStatus RequestScratch(TfLiteContext* context, size_t bytes, int* buffer_idx) {
  return GetMicroContext(context)->RequestScratchBufferInArena(bytes, buffer_idx);
}

void* GetScratch(TfLiteContext* context, int buffer_idx) {
  return GetMicroContext(context)->GetScratchBuffer(buffer_idx);
}

TfLiteTensor* GetTempTensor(const TfLiteContext* context, int tensor_idx) {
  return GetMicroContext(context)->AllocateTempTfLiteTensor(tensor_idx);
}

TfLiteEvalTensor* GetEval(const TfLiteContext* context, int tensor_idx) {
  return GetMicroContext(context)->GetEvalTensor(tensor_idx);
}

TfLiteExternalContext* GetExternal(TfLiteContext* context, TfLiteExternalContextType) {
  return static_cast<TfLiteExternalContext*>(GetMicroContext(context)->external_context());
}

#if !defined(TF_LITE_STRIP_ERROR_STRINGS)
void ReportError(TfLiteContext*, const char* format, ...) {
  va_list args;
  va_start(args, format);
  VMicroPrintf(format, args);
  va_end(args);
}
#else
void ReportError(TfLiteContext*, const char*, ...) {}
#endif

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

uint32_t RoundUpToBuffer(size_t bytes) {
  constexpr size_t kMask = MicroAllocator::kBufferAlignment - 1;
  return static_cast<uint32_t>((bytes + kMask) & ~kMask);
}

}  // namespace

uint32_t Model::version() const {
  ModelReader reader(this);
  return reader.Int32Field(reader.Root(), field::kModelVersion);
}

MicroInterpreter::MicroInterpreter(const Model* model, const MicroOpResolver& op_resolver,
                                   uint8_t* tensor_arena, size_t tensor_arena_size,
                                   MicroResourceVariables*, MicroProfilerInterface* profiler,
                                   bool preserve_all_tensors)
    : own_allocator_(tensor_arena, tensor_arena_size),
      context_of_kernels_(model, &own_allocator_),
      op_resolver_(op_resolver),
      preserve_all_tensors_(preserve_all_tensors) {
  Init(profiler);
}

MicroInterpreter::MicroInterpreter(const Model* model, const MicroOpResolver& op_resolver,
                                   MicroAllocator* allocator, MicroResourceVariables*,
                                   MicroProfilerInterface* profiler)
    : context_of_kernels_(model, allocator == nullptr ? &own_allocator_ : allocator),
      op_resolver_(op_resolver) {
  Init(profiler);
}

MicroInterpreter::~MicroInterpreter() {
  for (int i = 0; i < initialized_nodes_; ++i) {
    const Node& node = nodes_[i];
    if (node.registration->free != nullptr) node.registration->free(&context_, node.user_data);
  }
}

void MicroInterpreter::Init(MicroProfilerInterface* profiler) {
  context_.impl_ = &context_of_kernels_;
  context_.profiler = profiler;
  context_.ReportError = ReportError;
  context_.AllocatePersistentBuffer = AllocatePersistent;
  context_.RequestScratchBufferInArena = RequestScratch;
  context_.GetScratchBuffer = GetScratch;
  context_.GetTensor = GetTempTensor;
  context_.GetEvalTensor = GetEval;
  context_.GetExternalContext = GetExternal;
  FindSubgraph();
}

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

bool MicroInterpreter::ModelIsSound() {
  const ModelReader& model = context_of_kernels_.model_;
  if (!model.damaged()) return true;
  MicroPrintf("The model is damaged near byte %u", static_cast<unsigned>(model.damage()));
  return false;
}

TfLiteStatus MicroInterpreter::AllocateTensors() {
  if (tensors_allocated_) return kTfLiteOk;
  if (initialization_status_ == kTfLiteOk) initialization_status_ = AllocateEverything();
  tensors_allocated_ = initialization_status_ == kTfLiteOk;
  return initialization_status_;
}

TfLiteStatus MicroInterpreter::AllocateEverything() {
  context_of_kernels_.allocator_->BeginPlanning();
  TF_LITE_ENSURE_STATUS(LoadTensors());
  TF_LITE_ENSURE_STATUS(LoadNodes());
  TF_LITE_ENSURE_STATUS(CheckIndices(inputs_, 0));
  TF_LITE_ENSURE_STATUS(CheckIndices(outputs_, 0));
  TF_LITE_ENSURE_STATUS(InitNodes());
  TF_LITE_ENSURE_STATUS(PrepareNodes());
  TF_LITE_ENSURE_STATUS(AllocateVariables());
  TF_LITE_ENSURE_STATUS(PlanTensors());
  TF_LITE_ENSURE_STATUS(MakeTensors(inputs_, &input_tensors_));
  TF_LITE_ENSURE_STATUS(MakeTensors(outputs_, &output_tensors_));
  if (!ModelIsSound()) return kTfLiteError;
  return Reset();
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

TfLiteStatus MicroInterpreter::InitNodes() {
  for (; initialized_nodes_ < node_count_; ++initialized_nodes_) {
    Node& node = nodes_[initialized_nodes_];
    if (node.registration->init == nullptr) continue;
    LoadedNode loaded;
    Load(node, &loaded);
    const void* buffer = loaded.node.builtin_data;
    if (buffer == nullptr) buffer = loaded.node.custom_initial_data;
    node.user_data = node.registration->init(&context_, static_cast<const char*>(buffer),
                                             loaded.node.custom_initial_data_size);
    if (context_of_kernels_.allocator_->exhausted()) return kTfLiteError;
  }
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::PrepareNodes() {
  MicroAllocator& allocator = *context_of_kernels_.allocator_;
  for (uint16_t i = 0; i < node_count_; ++i) {
    Node& node = nodes_[i];
    if (node.registration->prepare == nullptr) continue;
    context_of_kernels_.op_index_ = i;
    LoadedNode loaded;
    Load(node, &loaded);
    TfLiteStatus status = node.registration->prepare(&context_, &loaded.node);
    node.user_data = loaded.node.user_data;
    if (status == kTfLiteOk) status = allocator.ResetTempAllocations();
    if (status == kTfLiteOk && allocator.exhausted()) status = kTfLiteError;
    if (status != kTfLiteOk) {
      MicroPrintf("Node %s (number %d) failed to prepare with status %d",
                  OpName(*node.registration), static_cast<int>(i), static_cast<int>(status));
      return kTfLiteError;
    }
    if (!ModelIsSound()) return kTfLiteError;
  }
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::AllocateVariables() {
  MicroContext& kernels = context_of_kernels_;
  for (int i = 0; i < tensor_count_; ++i) {
    TfLiteEvalTensor& tensor = kernels.tensors_[i];
    const ModelPos table = kernels.model_.TableAt(kernels.tensor_table_, i);
    if (kernels.model_.ByteField(table, field::kTensorIsVariable) == 0) continue;
    size_t bytes;
    if (tensor.data.data != nullptr || TfLiteEvalTensorByteLength(&tensor, &bytes) != kTfLiteOk) {
      kernels.model_.MarkDamaged(table);
      continue;
    }
    tensor.data.data =
        kernels.allocator_->AllocatePersistentBuffer(bytes, MicroAllocator::kBufferAlignment);
    if (tensor.data.data == nullptr) return kTfLiteError;
  }
  return ModelIsSound() ? kTfLiteOk : kTfLiteError;
}

// One PlannedBuffer a tensor, then one a scratch buffer, newest first.
TfLiteStatus MicroInterpreter::PlanTensors() {
  MicroContext& kernels = context_of_kernels_;
  const size_t scratch_count = kernels.scratch_ == nullptr ? 0 : kernels.scratch_->buffer_index + 1;
  const size_t count = tensor_count_ + scratch_count;
  auto* buffers = reinterpret_cast<PlannedBuffer*>(kernels.allocator_->AllocateTempBuffer(
      count * sizeof(PlannedBuffer), alignof(PlannedBuffer)));
  if (buffers == nullptr) return kTfLiteError;
  TF_LITE_ENSURE_STATUS(FindLifetimes(buffers));
  PlannedBuffer* next = buffers + tensor_count_;
  for (auto* scratch = kernels.scratch_; scratch != nullptr; scratch = scratch->next) {
    *next++ = {RoundUpToBuffer(scratch->bytes), 0, scratch->op_index, scratch->op_index};
  }
  const size_t head_bytes = PlanMemory(buffers, count);
  uint8_t* head = kernels.allocator_->head();
  for (int i = 0; i < tensor_count_; ++i) {
    if (buffers[i].first_op == PlannedBuffer::kNotUsed) continue;
    kernels.tensors_[i].data.data = head + buffers[i].offset;
  }
  next = buffers + tensor_count_;
  for (auto* scratch = kernels.scratch_; scratch != nullptr; scratch = scratch->next) {
    scratch->data = head + (next++)->offset;
  }
  kernels.allocator_->DeallocateTempBuffer(reinterpret_cast<uint8_t*>(buffers));
  return kernels.allocator_->EndPlanning(head_bytes);
}

TfLiteStatus MicroInterpreter::FindLifetimes(PlannedBuffer* buffers) {
  MicroContext& kernels = context_of_kernels_;
  const uint16_t last_op = node_count_ == 0 ? 0 : node_count_ - 1;
  for (int i = 0; i < tensor_count_; ++i) buffers[i] = {0, 0, PlannedBuffer::kNotUsed, 0};

  const auto in_head = [&](int tensor) { return kernels.tensors_[tensor].data.data == nullptr; };
  const auto is_writable = [&](int tensor) {
    if (in_head(tensor) || IsVariable(tensor)) return true;
    MicroPrintf("Tensor %d is a constant and is to be written", tensor);
    return false;
  };
  const auto use = [&](int tensor, uint16_t op, bool written) {
    if (tensor < 0 || !in_head(tensor)) return kTfLiteOk;
    PlannedBuffer& buffer = buffers[tensor];
    if (buffer.first_op == PlannedBuffer::kNotUsed) {
      if (!written) {
        MicroPrintf("Tensor %d is read before an operator has written it", tensor);
        return kTfLiteError;
      }
      buffer.first_op = op;
    }
    buffer.last_op = op;
    return kTfLiteOk;
  };

  for (size_t i = 0; i < SizeOf(inputs_); ++i) {
    if (!is_writable(inputs_->data[i])) return kTfLiteError;
    use(inputs_->data[i], 0, true);
  }
  for (uint16_t op = 0; op < node_count_; ++op) {
    LoadedNode loaded;
    Load(nodes_[op], &loaded);
    const TfLiteNode& node = loaded.node;
    for (int i = 0; i < node.inputs->size; ++i) {
      TF_LITE_ENSURE_STATUS(use(node.inputs->data[i], op, false));
    }
    for (size_t i = 0; i < SizeOf(node.intermediates); ++i)
      use(node.intermediates->data[i], op, true);
    for (int i = 0; i < node.outputs->size; ++i) {
      const int tensor = node.outputs->data[i];
      if (!is_writable(tensor)) return kTfLiteError;
      use(tensor, op, true);
    }
  }
  for (size_t i = 0; i < SizeOf(outputs_); ++i) {
    TF_LITE_ENSURE_STATUS(use(outputs_->data[i], last_op, false));
  }
  for (int i = 0; i < tensor_count_; ++i) {
    if (buffers[i].first_op == PlannedBuffer::kNotUsed) continue;
    size_t bytes;
    if (TfLiteEvalTensorByteLength(&kernels.tensors_[i], &bytes) != kTfLiteOk) {
      MicroPrintf("Tensor %d has a type or shape without a fixed size", i);
      return kTfLiteError;
    }
    buffers[i].bytes = RoundUpToBuffer(bytes);
    if (preserve_all_tensors_) {
      buffers[i].first_op = 0;
      buffers[i].last_op = last_op;
    }
  }
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::MakeTensors(const TfLiteIntArray* indices, TfLiteTensor*** tensors) {
  const size_t count = SizeOf(indices);
  *tensors = static_cast<TfLiteTensor**>(context_of_kernels_.allocator_->AllocatePersistentBuffer(
      count * sizeof(TfLiteTensor*), alignof(TfLiteTensor*)));
  if (*tensors == nullptr) return kTfLiteError;
  for (size_t i = 0; i < count; ++i) {
    TfLiteTensor* tensor = context_of_kernels_.NewTensor(indices->data[i], true);
    if (tensor == nullptr) return kTfLiteError;
    (*tensors)[i] = tensor;
  }
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::Invoke() {
  TF_LITE_ENSURE_STATUS(AllocateTensors());
  auto* profiler = static_cast<MicroProfilerInterface*>(context_.profiler);
  for (uint16_t i = 0; i < node_count_; ++i) {
    const TFLMRegistration& registration = *nodes_[i].registration;
    context_of_kernels_.op_index_ = i;
    LoadedNode loaded;
    Load(nodes_[i], &loaded);
    uint32_t event = 0;
    if (profiler != nullptr) event = profiler->BeginEvent(OpName(registration));
    TfLiteStatus status = registration.invoke(&context_, &loaded.node);
    if (profiler != nullptr) profiler->EndEvent(event);
    if (status == kTfLiteOk) status = context_of_kernels_.allocator_->ResetTempAllocations();
    if (status != kTfLiteOk) {
      if (status != kTfLiteAbort) {
        MicroPrintf("Node %s (number %d) failed to invoke with status %d", OpName(registration),
                    static_cast<int>(i), static_cast<int>(status));
      }
      return status;
    }
  }
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::Reset() {
  TF_LITE_ENSURE_STATUS(initialization_status_);
  if (context_of_kernels_.tensors_ == nullptr) return kTfLiteOk;
  for (int i = 0; i < initialized_nodes_; ++i) {
    const Node& node = nodes_[i];
    if (node.registration->reset != nullptr) node.registration->reset(&context_, node.user_data);
  }
  for (int i = 0; i < tensor_count_; ++i) {
    if (IsVariable(i)) ResetVariable(i);
  }
  return kTfLiteOk;
}

bool MicroInterpreter::IsVariable(int tensor_index) {
  ModelReader& model = context_of_kernels_.model_;
  const ModelPos table = model.TableAt(context_of_kernels_.tensor_table_, tensor_index);
  return model.ByteField(table, field::kTensorIsVariable) != 0;
}

// To 0 as the tensor counts it: an int8 tensor to its zero point.
void MicroInterpreter::ResetVariable(int tensor_index) {
  ModelReader& model = context_of_kernels_.model_;
  const TfLiteEvalTensor& tensor = context_of_kernels_.tensors_[tensor_index];
  const ModelPos table = model.TableAt(context_of_kernels_.tensor_table_, tensor_index);
  const ModelPos quantization = model.TableField(table, field::kTensorQuantization);
  const ModelPos zeros = model.VectorField(quantization, field::kQuantizationZeroPoint, 8);
  const bool shifted = tensor.type == kTfLiteInt8 && model.VectorSize(zeros) > 0;
  size_t bytes;
  TfLiteEvalTensorByteLength(&tensor, &bytes);
  if (tensor.data.data != nullptr) {
    memset(tensor.data.data, shifted ? model.Int64At(zeros, 0) : 0, bytes);
  }
}

TfLiteTensor* MicroInterpreter::input(size_t index) {
  if (tensors_allocated_ && index < inputs_size()) return input_tensors_[index];
  MicroPrintf("Input index %d out of range (length is %d)", static_cast<int>(index),
              static_cast<int>(inputs_size()));
  return nullptr;
}

TfLiteTensor* MicroInterpreter::output(size_t index) {
  if (tensors_allocated_ && index < outputs_size()) return output_tensors_[index];
  MicroPrintf("Output index %d out of range (length is %d)", static_cast<int>(index),
              static_cast<int>(outputs_size()));
  return nullptr;
}

TfLiteEvalTensor* MicroInterpreter::GetTensor(int tensor_index, int subgraph_index) {
  if (!preserve_all_tensors_) {
    MicroPrintf("GetTensor requires all tensors to be preserved");
    return nullptr;
  }
  const bool exists = tensors_allocated_ && subgraph_index == 0 && tensor_index >= 0 &&
                      tensor_index < tensor_count_;
  return exists ? context_of_kernels_.GetEvalTensor(tensor_index) : nullptr;
}

TfLiteStatus MicroInterpreter::ResetVariableTensor(int tensor_index, int subgraph_index) {
  const bool exists = tensors_allocated_ && subgraph_index == 0 && tensor_index >= 0 &&
                      tensor_index < tensor_count_;
  if (!exists || !IsVariable(tensor_index)) {
    MicroPrintf("Accessing tensor %d in subgraph %d which is not a variable", tensor_index,
                subgraph_index);
    return kTfLiteError;
  }
  ResetVariable(tensor_index);
  return kTfLiteOk;
}

const char* MicroInterpreter::OpName(const TFLMRegistration& registration) const {
  if (registration.builtin_code == BuiltinOperator_CUSTOM) return registration.custom_name;
#if defined(TF_LITE_STRIP_ERROR_STRINGS)
  return "";
#else
  return EnumNameBuiltinOperator(static_cast<BuiltinOperator>(registration.builtin_code));
#endif
}

}  // namespace tflite
