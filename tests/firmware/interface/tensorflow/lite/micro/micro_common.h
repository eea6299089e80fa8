// The part of TensorFlow Lite Micro's interface that generated programs use, without any of its code.
#pragma once
#include <cstddef>
#include <cstdint>

enum TfLiteStatus { kTfLiteOk, kTfLiteError };
struct TFLMRegistration;
struct TfLiteTensor {
  union {
    void* data;
    uint8_t* uint8;
  } data;
  size_t bytes;
};
