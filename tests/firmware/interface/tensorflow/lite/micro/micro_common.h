// The part of TensorFlow Lite Micro's interface that generated programs use, without any of its code.
#pragma once
#include <cstddef>
#include <cstdint>

#ifdef TFLM_IN_MICRO  // TFLM since October 2026
#define TFLM_NAMESPACE namespace tflite { namespace micro {
#define TFLM_NAMESPACE_END }}
#else
#define TFLM_NAMESPACE namespace tflite {
#define TFLM_NAMESPACE_END }
#endif

enum TfLiteStatus { kTfLiteOk, kTfLiteError };
struct TFLMRegistration;
struct TfLiteTensor {
  union {
    void* data;
    uint8_t* uint8;
  } data;
  size_t bytes;
};
