// Runs a model kRuns times with a table of places, each memory exactly as large as it must be, between guard bytes.
// Inputs are x = x * 1664525 + 1013904223, byte x >> 24; those in kTied get theirs before the first run alone.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "arena.h"
#if __has_include("apart_allocator.h")
#include "apart_allocator.h"
#endif
#include "model_data.h"
#include "planner.h"
#include "resolver.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/schema/schema_generated.h"
#include "tied.h"  // kTied, kRuns, kMoved: a tensor of the main graph that changes its buffer between runs, or -1

namespace {

constexpr size_t kGuard = 64, kPool = 1 << 17;
constexpr uint8_t kMark = 0xA5;
alignas(16) uint8_t pool[kPool];
alignas(16) uint8_t other_place[kPool / 8];
uint8_t* memories[16];

size_t SizeOf(int memory) {
  return memory == model::kPlan.arena ? model::kArenaBytes : model::kMemoryBytes[memory];
}

bool IsTied(size_t input) {
  for (int each : kTied) {
    if (each == static_cast<int>(input)) return true;
  }
  return false;
}

bool IsMarked(const uint8_t* guard) {
  for (size_t k = 0; k < kGuard; ++k) {
    if (guard[k] != kMark) return false;
  }
  return true;
}

int Run() {
  std::memset(pool, kMark, sizeof(pool));
  size_t at = kGuard;
  for (int each = 0; each < model::kPlan.memories; ++each) {
    memories[each] = pool + at;
    at += (SizeOf(each) + 15) / 16 * 16 + kGuard;
  }
#ifdef APART
  uint8_t* temporary = pool + at;
  at += model::kTemporaryBytes + kGuard;
#endif
  static model::Resolver resolver;
  if (at > kPool || !model::RegisterOperators(resolver)) return 1;
  static tflite_memopt::TablePlanner planner(model::kPlan, memories);
  uint8_t* arena = memories[model::kPlan.arena];
#ifdef APART
  static tflite_memopt::ApartAllocator apart(arena, model::kArenaBytes, temporary, model::kTemporaryBytes);
  tflite_memopt::tflm::MicroAllocator* allocator = tflite_memopt::tflm::MicroAllocator::Create(&apart, &planner);
#else
  tflite_memopt::tflm::MicroAllocator* allocator = tflite_memopt::tflm::MicroAllocator::Create(arena, model::kArenaBytes, &planner);
#endif
  static tflite_memopt::tflm::MicroInterpreter interpreter(tflite_memopt::tflm::GetModel(model::kModelData), resolver, allocator);
  if (interpreter.AllocateTensors() != kTfLiteOk) return 2;
#ifdef APART
  if (!IsMarked(temporary - kGuard) || !IsMarked(temporary + model::kTemporaryBytes)) return 5;
  std::memset(temporary, kMark, model::kTemporaryBytes);  // it is the firmware's now
#endif
  uint32_t x = 12345;
  for (int run = 0; run < kRuns; ++run) {
    for (size_t i = 0; i < interpreter.inputs_size(); ++i) {
      TfLiteTensor* input = interpreter.input(i);
      if (run > 0 && IsTied(i)) continue;
      uint8_t* bytes = input->data.uint8;
      if (kMoved >= 0 && run % 2 == 1) {
        bytes = other_place;
        interpreter.GetTensor(kMoved)->data.uint8 = other_place;
      } else if (kMoved >= 0) {
        interpreter.GetTensor(kMoved)->data.uint8 = bytes;
      }
      for (size_t k = 0; k < input->bytes; ++k) {
        x = x * 1664525u + 1013904223u;
        bytes[k] = static_cast<uint8_t>(x >> 24);
      }
    }
    if (interpreter.Invoke() != kTfLiteOk) return 3;
    for (size_t i = 0; i < interpreter.outputs_size(); ++i) {
      const TfLiteTensor* output = interpreter.output(i);
      uint32_t digest = 2166136261u;  // FNV-1a
      for (size_t k = 0; k < output->bytes; ++k) digest = (digest ^ output->data.uint8[k]) * 16777619u;
      printf("output %d: %d bytes, digest %x\n", static_cast<int>(i), static_cast<int>(output->bytes),
             static_cast<unsigned>(digest));
    }
  }
  for (int each = 0; each < model::kPlan.memories; ++each) {
    if (!IsMarked(memories[each] - kGuard) || !IsMarked(memories[each] + SizeOf(each))) return 4;
  }
#ifdef APART
  for (size_t k = 0; k < model::kTemporaryBytes; k += kGuard) {
    if (!IsMarked(temporary + k)) return 6;
  }
#endif
  return 0;
}

}  // namespace

int main() { return Run(); }
