// An interpreter that runs a fixed graph of fake kernels; host_device.cc says what they do.
#pragma once

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/micro_op_resolver.h"

namespace tflite {

struct Model;

inline const Model* GetModel(const void* data) { return static_cast<const Model*>(data); }

class MicroInterpreter {
 public:
  MicroInterpreter(const Model* model, const MicroOpResolver& resolver, uint8_t* arena,
                   size_t arena_bytes);

  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();

  TfLiteTensor* input(size_t index);
  TfLiteTensor* output(size_t index);
  size_t inputs_size() const;
  size_t outputs_size() const;
  size_t arena_used_bytes() const;

 private:
  const MicroOpResolver& resolver_;
};

}  // namespace tflite
