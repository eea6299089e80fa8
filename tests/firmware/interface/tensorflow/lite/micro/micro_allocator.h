#pragma once
#include "tensorflow/lite/micro/micro_common.h"

TFLM_NAMESPACE
class MicroMemoryPlanner;
class SingleArenaBufferAllocator;
class MicroAllocator {
 public:
  static MicroAllocator* Create(uint8_t* arena, size_t bytes);
  static MicroAllocator* Create(uint8_t* arena, size_t bytes, MicroMemoryPlanner* planner);
  static MicroAllocator* Create(SingleArenaBufferAllocator* allocator, MicroMemoryPlanner* planner);
  static MicroAllocator* Create(uint8_t* persistent, size_t persistent_bytes, uint8_t* non_persistent,
                                size_t non_persistent_bytes);
};
TFLM_NAMESPACE_END
