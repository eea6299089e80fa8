#pragma once
#include "tensorflow/lite/micro/micro_common.h"

namespace tflite {
class SingleArenaBufferAllocator {
 public:
  SingleArenaBufferAllocator(uint8_t* head, uint8_t* tail);
  SingleArenaBufferAllocator(uint8_t* buffer, size_t size);
  virtual ~SingleArenaBufferAllocator() = default;
  virtual TfLiteStatus ResizeBuffer(uint8_t* buffer, size_t size, size_t alignment);
  virtual uint8_t* AllocateResizableBuffer(size_t size, size_t alignment);
  virtual TfLiteStatus DeallocateResizableBuffer(uint8_t* buffer);
  virtual TfLiteStatus ReserveNonPersistentOverlayMemory(size_t size, size_t alignment);
  virtual uint8_t* AllocateTemp(size_t size, size_t alignment);
  virtual void DeallocateTemp(uint8_t* buffer);
  virtual bool IsAllTempDeallocated();
  virtual TfLiteStatus ResetTempAllocations();
  virtual uint8_t* GetOverlayMemoryAddress() const;
  virtual size_t GetAvailableMemory(size_t alignment) const;
};
}  // namespace tflite
