#pragma once
#include "tensorflow/lite/micro/micro_allocator.h"

namespace tflite {
class MicroResourceVariables {
 public:
  static MicroResourceVariables* Create(MicroAllocator* allocator, int count);
};
}  // namespace tflite
