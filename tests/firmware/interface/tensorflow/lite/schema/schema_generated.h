#pragma once
#include <cstdint>
#include <cstring>

namespace tflite {
struct Model;

// The root table of a flatbuffer.
inline const Model* GetModel(const void* bytes) {
  uint32_t at;
  std::memcpy(&at, bytes, sizeof(at));
  return reinterpret_cast<const Model*>(static_cast<const uint8_t*>(bytes) + at);
}
}  // namespace tflite
