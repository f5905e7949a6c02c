// Where MicroInterpreter puts its tensors.

#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/memory_plan.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_log.h"

namespace tflite {
namespace {

uint32_t RoundUpToBuffer(size_t bytes) {
  constexpr size_t kMask = MicroAllocator::kBufferAlignment - 1;
  return static_cast<uint32_t>((bytes + kMask) & ~kMask);
}

// Notes which operators use a tensor of the head; other tensors have their memory already.
class Lifetimes {
 public:
  Lifetimes(const TfLiteEvalTensor* tensors, int count, PlannedBuffer* buffers)
      : tensors_(tensors), buffers_(buffers) {
    for (int i = 0; i < count; ++i) buffers[i] = {0, 0, PlannedBuffer::kNotUsed, 0};
  }

  void Write(int tensor, uint16_t op) {
    if (!IsInHead(tensor)) return;
    PlannedBuffer& buffer = buffers_[tensor];
    if (buffer.first_op == PlannedBuffer::kNotUsed) buffer.first_op = op;
    buffer.last_op = op;
  }

  // False when nothing has written the tensor.
  bool Read(int tensor, uint16_t op) {
    if (tensor == kTfLiteOptionalTensor || !IsInHead(tensor)) return true;
    PlannedBuffer& buffer = buffers_[tensor];
    buffer.last_op = op;
    if (buffer.first_op != PlannedBuffer::kNotUsed) return true;
    MicroPrintf("Tensor %d is read before an operator has written it", tensor);
    return false;
  }

 private:
  bool IsInHead(int tensor) const { return tensors_[tensor].data.data == nullptr; }

  const TfLiteEvalTensor* tensors_;
  PlannedBuffer* buffers_;
};

}  // namespace

TfLiteStatus MicroInterpreter::AllocateVariables() {
  MicroContext& kernels = context_of_kernels_;
  for (int i = 0; i < tensor_count_; ++i) {
    if (!IsVariable(i)) continue;
    TfLiteEvalTensor& tensor = kernels.tensors_[i];
    size_t bytes;
    if (tensor.data.data != nullptr || TfLiteEvalTensorByteLength(&tensor, &bytes) != kTfLiteOk) {
      MicroPrintf("Variable tensor %d has data or no fixed size", i);
      return kTfLiteError;
    }
    tensor.data.data =
        kernels.allocator_->AllocatePersistentBuffer(bytes, MicroAllocator::kBufferAlignment);
    if (tensor.data.data == nullptr) return kTfLiteError;
  }
  return kTfLiteOk;
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
  TF_LITE_ENSURE_STATUS(FindSizes(buffers));
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

uint16_t MicroInterpreter::LastNode() const { return node_count_ == 0 ? 0 : node_count_ - 1; }

// The model's inputs are in use from the first operator on, its outputs to the last one.
TfLiteStatus MicroInterpreter::FindLifetimes(PlannedBuffer* buffers) {
  Lifetimes lifetimes(context_of_kernels_.tensors_, tensor_count_, buffers);
  for (size_t i = 0; i < inputs_size(); ++i) {
    if (!IsWritable(inputs_->data[i])) return kTfLiteError;
    lifetimes.Write(inputs_->data[i], 0);
  }
  for (uint16_t op = 0; op < node_count_; ++op) {
    LoadedNode loaded;
    Load(nodes_[op], &loaded);
    const TfLiteIntArray& inputs = *loaded.node.inputs;
    const TfLiteIntArray& outputs = *loaded.node.outputs;
    for (int i = 0; i < inputs.size; ++i) {
      if (!lifetimes.Read(inputs.data[i], op)) return kTfLiteError;
    }
    for (int i = 0; i < outputs.size; ++i) {
      if (!IsWritable(outputs.data[i])) return kTfLiteError;
      lifetimes.Write(outputs.data[i], op);
    }
  }
  for (size_t i = 0; i < outputs_size(); ++i) {
    if (!lifetimes.Read(outputs_->data[i], LastNode())) return kTfLiteError;
  }
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::FindSizes(PlannedBuffer* buffers) {
  for (int i = 0; i < tensor_count_; ++i) {
    PlannedBuffer& buffer = buffers[i];
    if (buffer.first_op == PlannedBuffer::kNotUsed) continue;
    size_t bytes;
    if (TfLiteEvalTensorByteLength(&context_of_kernels_.tensors_[i], &bytes) != kTfLiteOk) {
      MicroPrintf("Tensor %d has a type or shape without a fixed size", i);
      return kTfLiteError;
    }
    buffer.bytes = RoundUpToBuffer(bytes);
    if (preserve_all_tensors_) {
      buffer.first_op = 0;
      buffer.last_op = LastNode();
    }
  }
  return kTfLiteOk;
}

bool MicroInterpreter::IsWritable(int tensor_index) {
  const bool is_constant = context_of_kernels_.tensors_[tensor_index].data.data != nullptr;
  if (!is_constant || IsVariable(tensor_index)) return true;
  MicroPrintf("Tensor %d is a constant and is to be written", tensor_index);
  return false;
}

}  // namespace tflite
