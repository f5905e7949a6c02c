#ifndef TENSORFLOW_LITE_MICRO_MICRO_INTERPRETER_H_
#define TENSORFLOW_LITE_MICRO_MICRO_INTERPRETER_H_

#include <cstddef>
#include <cstdint>

#include "tensorflow/lite/c/c_api_types.h"
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/kernels/internal/tensor_ctypes.h"
#include "tensorflow/lite/micro/memory_plan.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_context.h"
#include "tensorflow/lite/micro/micro_op_resolver.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"
#include "tensorflow/lite/portable_type_to_tflitetype.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace tflite {

// Not in this runtime; models with resource variables need TFLM's.
class MicroResourceVariables;

// Runs a model with one subgraph.
class MicroInterpreter {
 public:
  MicroInterpreter(const Model* model, const MicroOpResolver& op_resolver, uint8_t* tensor_arena,
                   size_t tensor_arena_size, MicroResourceVariables* resource_variables = nullptr,
                   MicroProfilerInterface* profiler = nullptr, bool preserve_all_tensors = false);
  MicroInterpreter(const Model* model, const MicroOpResolver& op_resolver,
                   MicroAllocator* allocator, MicroResourceVariables* resource_variables = nullptr,
                   MicroProfilerInterface* profiler = nullptr);
  ~MicroInterpreter();

  MicroInterpreter(const MicroInterpreter&) = delete;
  MicroInterpreter& operator=(const MicroInterpreter&) = delete;

  // Reads the model, prepares its ops and plans the arena. Does nothing when it has succeeded
  // before.
  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();
  // Resets the ops' states and the variable tensors.
  TfLiteStatus Reset();

  TfLiteStatus initialization_status() const { return initialization_status_; }
  // The smallest arena with which everything up to now works.
  size_t arena_used_bytes() const { return context_of_kernels_.allocator_->used_bytes(); }
  bool preserve_all_tensors() const { return preserve_all_tensors_; }

  size_t inputs_size() const { return SizeOf(inputs_); }
  size_t outputs_size() const { return SizeOf(outputs_); }
  // Null before AllocateTensors() has succeeded, and when there is no such tensor.
  TfLiteTensor* input(size_t index);
  TfLiteTensor* output(size_t index);
  TfLiteTensor* input_tensor(size_t index) { return input(index); }
  TfLiteTensor* output_tensor(size_t index) { return output(index); }
  template <class T>
  T* typed_input_tensor(int tensor_index) {
    return DataOf<T>(input(tensor_index));
  }
  template <class T>
  T* typed_output_tensor(int tensor_index) {
    return DataOf<T>(output(tensor_index));
  }

  // Any tensor, by its index in the model; null unless all tensors are preserved.
  TfLiteEvalTensor* GetTensor(int tensor_index, int subgraph_index = 0);
  TfLiteStatus ResetVariableTensor(int tensor_index, int subgraph_index = 0);
  TfLiteStatus SetMicroExternalContext(void* external_context_payload) {
    return context_of_kernels_.set_external_context(external_context_payload);
  }

 private:
  // What is kept of an operator; the rest is read from the model when it is needed.
  struct Node {
    const TFLMRegistration* registration;
    void* user_data;
    ModelPos table;
  };
  // A node as its kernel sees it.
  struct LoadedNode {
    TfLiteNode node;
    alignas(8) uint8_t params[kMaxParamsBytes];
  };

  template <class T>
  static T* DataOf(TfLiteTensor* tensor) {
    const bool matches = tensor != nullptr && tensor->type == typeToTfLiteType<T>();
    return matches ? GetTensorData<T>(tensor) : nullptr;
  }
  static size_t SizeOf(const TfLiteIntArray* indices) {
    return indices == nullptr ? 0 : indices->size;
  }

  void Init(MicroProfilerInterface* profiler);
  void FindSubgraph();
  bool ModelIsSound();

  TfLiteStatus LoadTensors();
  TfLiteStatus LoadTensor(ModelPos table, TfLiteEvalTensor* tensor);
  TfLiteStatus LoadNodes();
  TfLiteStatus FindRegistration(ModelPos op, const TFLMRegistration** registration);
  TfLiteStatus CheckIndices(const TfLiteIntArray* indices, int lowest);
  void Load(const Node& node, LoadedNode* loaded);
  TfLiteStatus InitNodes();
  TfLiteStatus PrepareNodes();

  TfLiteStatus AllocateVariables();
  TfLiteStatus PlanTensors();
  TfLiteStatus FindLifetimes(PlannedBuffer* buffers);
  TfLiteStatus FindSizes(PlannedBuffer* buffers);
  uint16_t LastNode() const;
  bool IsWritable(int tensor_index);

  TfLiteStatus MakeTensors(const TfLiteIntArray* indices, TfLiteTensor*** tensors);
  TfLiteStatus AllocateEverything();
  const char* OpName(const TFLMRegistration& registration) const;
  bool IsVariable(int tensor_index);
  void ResetVariable(int tensor_index);

  MicroAllocator own_allocator_;
  MicroContext context_of_kernels_;
  TfLiteContext context_ = {};
  const MicroOpResolver& op_resolver_;
  TfLiteIntArray* inputs_ = nullptr;
  TfLiteIntArray* outputs_ = nullptr;
  TfLiteTensor** input_tensors_ = nullptr;
  TfLiteTensor** output_tensors_ = nullptr;
  Node* nodes_ = nullptr;
  ModelPos operator_table_ = 0;
  ModelPos opcode_table_ = 0;
  uint16_t tensor_count_ = 0;
  uint16_t node_count_ = 0;
  uint16_t initialized_nodes_ = 0;
  bool preserve_all_tensors_ = false;
  bool tensors_allocated_ = false;
  TfLiteStatus initialization_status_ = kTfLiteOk;
};

}  // namespace tflite

#endif  // TENSORFLOW_LITE_MICRO_MICRO_INTERPRETER_H_
