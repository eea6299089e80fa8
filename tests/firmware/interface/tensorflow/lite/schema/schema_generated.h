#pragma once

namespace tflite {
struct Model;
const Model* GetModel(const void* bytes);
}  // namespace tflite
