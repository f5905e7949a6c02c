// An interpreter that runs a fixed graph of fake kernels; host_device.cc says what they do.
#pragma once

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_op_resolver.h"

namespace tflite {

struct Model;

inline const Model* GetModel(const void* data) { return static_cast<const Model*>(data); }

class MicroInterpreter {
 public:
  MicroInterpreter(const Model* model, const MicroOpResolver& resolver, uint8_t* arena,
                   size_t arena_bytes, MicroResourceVariables* variables, void* profiler,
                   bool preserve_all_tensors);
  MicroInterpreter(const Model* model, const MicroOpResolver& resolver, MicroAllocator* allocator,
                   MicroResourceVariables* variables);

  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();
  TfLiteStatus Reset();

  TfLiteEvalTensor* GetTensor(int tensor_index, int subgraph_index = 0);
  TfLiteTensor* input(size_t index);
  TfLiteTensor* output(size_t index);
  size_t inputs_size() const;
  size_t outputs_size() const;
  size_t arena_used_bytes() const;

 private:
  const MicroOpResolver& resolver_;
};

}  // namespace tflite
