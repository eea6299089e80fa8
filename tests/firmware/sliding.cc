// Feeds a signal to a model of a sliding window, hop by hop, and prints the outputs of every window; then once again,
// after Reset(), from another place of the signal on. Its bytes are x = x * 1664525 + 1013904223, byte x >> 24.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "arena.h"
#include "model_data.h"
#include "planner.h"
#include "resolver.h"
#include "steps.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace {

constexpr int kHops = 60;
alignas(16) uint8_t arena[model::kArenaBytes];
uint8_t* memories[] = {arena};

int Run() {
  std::memset(arena, 0xA5, sizeof(arena));
  static model::Resolver resolver;
  if (!model::RegisterOperators(resolver)) return 1;
  static tflite_memopt::TablePlanner planner(model::kPlan, memories);
  static tflite_memopt::tflm::MicroInterpreter interpreter(
      tflite_memopt::tflm::GetModel(model::kModelData), resolver,
      tflite_memopt::tflm::MicroAllocator::Create(arena, model::kArenaBytes, &planner));
  if (interpreter.AllocateTensors() != kTfLiteOk) return 2;
  model::Steps steps(interpreter);
  uint8_t hop[model::Steps::kFrameBytes];
  uint32_t x = 12345;
  for (int signal = 0; signal < 2; ++signal) {
    steps.Reset();
    for (int call = 1; call <= kHops; ++call) {
      for (uint8_t& byte : hop) {
        x = x * 1664525u + 1013904223u;
        byte = static_cast<uint8_t>(x >> 24);
      }
      if (steps.Step(hop) != kTfLiteOk) return 3;
      if (steps.HasWindow() != (call >= model::Steps::kWarmUp)) return 4;
      if (!steps.HasWindow()) continue;
      std::printf("window");
      for (size_t k = 0; k < interpreter.output(0)->bytes; ++k) std::printf(" %d", interpreter.output(0)->data.int8[k]);
      std::printf("\n");
    }
  }
  return 0;
}

}  // namespace

int main() { return Run(); }
