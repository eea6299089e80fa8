#pragma once
#include "tensorflow/lite/micro/micro_common.h"

namespace tflite {
class MicroMemoryPlanner {
 public:
  virtual ~MicroMemoryPlanner() = default;
  virtual TfLiteStatus AddBuffer(int size, int first, int last) = 0;
  virtual TfLiteStatus AddBuffer(int size, int first, int last, int offset);
  virtual size_t GetMaximumMemorySize() = 0;
  virtual int GetBufferCount() = 0;
  virtual TfLiteStatus GetOffsetForBuffer(int index, int* offset) = 0;
  virtual TfLiteStatus Init(unsigned char* scratch, int size);
  virtual bool preserves_all_tensors() const = 0;
};
}  // namespace tflite
