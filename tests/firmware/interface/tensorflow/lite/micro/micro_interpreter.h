#pragma once
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

TFLM_NAMESPACE
class MicroInterpreter {
 public:
  MicroInterpreter(const Model* model, const MicroOpResolver& resolver, MicroAllocator* allocator,
                   MicroResourceVariables* variables = nullptr);
  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();
  TfLiteTensor* input(size_t index);
  TfLiteTensor* output(size_t index);
  size_t inputs_size() const;
  size_t outputs_size() const;
  size_t arena_used_bytes() const;
};
TFLM_NAMESPACE_END
