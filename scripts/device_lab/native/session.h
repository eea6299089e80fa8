// A model in an arena, as firmware sets it up: what every runner begins with.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>

#include "tensorflow/lite/micro/arena_allocator/single_arena_buffer_allocator.h"
#include "tensorflow/lite/micro/memory_planner/greedy_memory_planner.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

// As many resource variables as there are distinct names, which is what firmware must ask for.
inline int ResourceVariables(const tflite::Model* model) {
  constexpr int kMost = 64;
  const char* names[kMost];
  int count = 0;
  for (const auto* graph : *model->subgraphs()) {
    for (const auto* op : *graph->operators()) {
      const auto* options = op->builtin_options_as_VarHandleOptions();
      if (options == nullptr) continue;
      const char* name = options->shared_name() == nullptr ? "" : options->shared_name()->c_str();
      bool known = false;
      for (int i = 0; i < count; ++i) known = known || strcmp(names[i], name) == 0;
      if (!known && count < kMost) names[count++] = name;
    }
  }
  return count;
}

class Interpreter : public tflite::MicroInterpreter {
 public:
  using tflite::MicroInterpreter::MicroInterpreter;
  using tflite::MicroInterpreter::context;
};

// MicroInterpreter as firmware makes it with an arena, but with the allocator in reach, which tells head and tail:
// the steps of MicroAllocator::Create(arena, size), one by one.
class Session {
 public:
  tflite::SingleArenaBufferAllocator* allocator = nullptr;
  Interpreter* interpreter = nullptr;

  bool Open(const tflite::Model* model, const tflite::MicroOpResolver& resolver, uint8_t* arena, size_t size,
            tflite::MicroProfilerInterface* profiler = nullptr) {
    constexpr size_t kLeast = 512;  // below it, SingleArenaBufferAllocator::Create writes behind the arena
    if (size < kLeast) return false;
    allocator = tflite::SingleArenaBufferAllocator::Create(arena, size);
    uint8_t* room = allocator->AllocatePersistentBuffer(sizeof(tflite::GreedyMemoryPlanner),
                                                        alignof(tflite::GreedyMemoryPlanner));
    auto* planner = new (room) tflite::GreedyMemoryPlanner();
    tflite::MicroAllocator* micro = tflite::MicroAllocator::Create(allocator, planner);
    const int variables = ResourceVariables(model);
    auto* resources = variables > 0 ? tflite::MicroResourceVariables::Create(micro, variables) : nullptr;
    interpreter = new (place_) Interpreter(model, resolver, micro, resources, profiler);
    if (interpreter->AllocateTensors() == kTfLiteOk) return true;
    // Its destructor calls kernels that were never set up; it holds nothing outside the arena.
    interpreter = nullptr;
    return false;
  }
  void Close() {
    if (interpreter != nullptr) interpreter->~Interpreter();
    interpreter = nullptr;
  }
  void Forget() { interpreter = nullptr; }

 private:
  alignas(16) uint8_t place_[sizeof(Interpreter)];
};
