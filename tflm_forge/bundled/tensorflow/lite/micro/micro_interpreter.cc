#include "tensorflow/lite/micro/micro_interpreter.h"

#include <cstdarg>
#include <cstring>

#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/micro_log.h"

namespace tflite {
namespace {

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
