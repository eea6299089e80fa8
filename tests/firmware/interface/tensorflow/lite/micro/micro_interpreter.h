#pragma once
#include <cstring>

#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

TFLM_NAMESPACE
class MicroProfilerInterface;

// Bytes that only the library looks into: the model is in their first word, the allocator in their fourth.
class MicroInterpreter {
 public:
  MicroInterpreter(const Model* model, const MicroOpResolver& resolver, MicroAllocator* allocator,
                   MicroResourceVariables* variables = nullptr, MicroProfilerInterface* profiler = nullptr);
  ~MicroInterpreter();
  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();
  TfLiteStatus Reset();
  TfLiteTensor* input(size_t index);
  TfLiteTensor* output(size_t index);
  TfLiteEvalTensor* GetTensor(int tensor, int subgraph = 0);
  size_t inputs_size() const { return CountOf(1); }
  size_t outputs_size() const { return CountOf(2); }
  size_t arena_used_bytes() const {
    const MicroAllocator* allocator;
    std::memcpy(&allocator, state_ + 3 * sizeof(void*), sizeof(allocator));
    return allocator->used_bytes();
  }

 private:
  // The length of vector `field` of the first subgraph in the flatbuffer.
  size_t CountOf(int field) const {
    const uint8_t* model;
    std::memcpy(&model, state_, sizeof(model));
    const uint8_t* subgraphs = Field(model, 2);
    return Word(Field(subgraphs + 4 + Word(subgraphs + 4), field));
  }
  static uint32_t Word(const uint8_t* at) {
    uint32_t value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  static const uint8_t* Field(const uint8_t* table, int field) {
    int32_t back;
    std::memcpy(&back, table, sizeof(back));
    uint16_t offset;
    std::memcpy(&offset, table - back + 4 + 2 * field, sizeof(offset));
    return table + offset + Word(table + offset);
  }

  alignas(16) unsigned char state_[4096];
};
TFLM_NAMESPACE_END
