// The part of TensorFlow Lite Micro's interface that generated programs use, declared as the shared library of PyPI's
// tflite-micro lays it out, with TF_LITE_STATIC_MEMORY on 64 bits; without any of its code. probe.cc checks the layout.
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
union TfLitePtrUnion {
  void* data;
  uint8_t* uint8;
  int8_t* int8;
  int16_t* i16;
  int32_t* i32;
  float* f;
  bool* b;
};
struct TfLiteEvalTensor {
  TfLitePtrUnion data;
  void* dims;
  int type;
};
struct TfLiteTensor {
  struct { int type; void* params; } quantization;
  struct { float scale; int32_t zero_point; } params;
  TfLitePtrUnion data;
  void* dims;
  size_t bytes;
  int type, allocation_type;
  bool is_variable;
};
