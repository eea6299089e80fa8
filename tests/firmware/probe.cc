// Checks that the library lays out what the interface declares: a model of one RELU in 1 KB.
#include <cstdio>

#include "tensorflow/lite/micro/memory_planner/micro_memory_planner.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "probe_model.h"  // kModel, kBytes, kArena: what the model takes

namespace {

// The planner that the allocator asks is this one: its virtual functions are called in their order.
class OnePlanner : public TFLM::MicroMemoryPlanner {
 public:
  TfLiteStatus AddBuffer(int, int, int) override { return ++count_, kTfLiteOk; }
  TfLiteStatus AddBuffer(int, int, int, int) override { return kTfLiteError; }
  size_t GetMaximumMemorySize() override { return static_cast<size_t>(count_) * 64; }
  int GetBufferCount() override { return count_; }
  TfLiteStatus GetOffsetForBuffer(int index, int* offset) override { return *offset = index * 64, kTfLiteOk; }
  TfLiteStatus Init(unsigned char*, int) override { return count_ = 0, kTfLiteOk; }
  bool preserves_all_tensors() const override { return true; }  // which GetTensor asks for
  void PrintMemoryPlan() override {}
  int count_ = 0;
};

alignas(16) unsigned char arena[4096];

int Differs(const char* what) {
  std::printf("the wheel's layout changed: %s\n", what);
  return 1;
}

int Probe() {
  TFLM::MicroMutableOpResolver<1> resolver;
  if (resolver.FindOp(static_cast<tflite::BuiltinOperator>(19)) != nullptr) return Differs("a resolver that is empty");
  if (resolver.AddRelu() != kTfLiteOk || resolver.AddRelu() == kTfLiteOk) return Differs("a resolver of one operator");
  if (resolver.FindOp(static_cast<tflite::BuiltinOperator>(19)) == nullptr) return Differs("FindOp of a resolver");
  OnePlanner planner;
  TFLM::MicroAllocator* allocator = TFLM::MicroAllocator::Create(arena, sizeof(arena), &planner);
  TFLM::MicroInterpreter interpreter(tflite::GetModel(kModel), resolver, allocator);
  if (interpreter.AllocateTensors() != kTfLiteOk) return Differs("AllocateTensors");
  if (planner.count_ != 2) return Differs("MicroMemoryPlanner");
  if (interpreter.inputs_size() != 1 || interpreter.outputs_size() != 1) return Differs("the model of an interpreter");
  TfLiteTensor* input = interpreter.input(0);
  TfLiteTensor* output = interpreter.output(0);
  const void* places[] = {interpreter.GetTensor(0)->data.data, interpreter.GetTensor(1)->data.data};
  if (places[0] != input->data.data || places[1] != output->data.data) return Differs("TfLiteEvalTensor");
  if (input->bytes != kBytes || output->bytes != kBytes || input->is_variable) return Differs("TfLiteTensor");
  if (input->params.zero_point != 3 || input->type != 9) return Differs("the quantization of a TfLiteTensor");
  for (size_t k = 0; k < kBytes; ++k) input->data.uint8[k] = static_cast<uint8_t>(k * 40);
  if (interpreter.Invoke() != kTfLiteOk) return Differs("Invoke");
  for (size_t k = 0; k < kBytes; ++k) {
    const int value = static_cast<int8_t>(static_cast<uint8_t>(k * 40));
    if (output->data.int8[k] != (value < 3 ? 3 : value)) return Differs("the bytes of a TfLiteTensor");
  }
  TFLM::MicroInterpreter again(tflite::GetModel(kModel), resolver, TFLM::MicroAllocator::Create(arena, sizeof(arena)));
  if (again.AllocateTensors() != kTfLiteOk) return Differs("MicroAllocator");
  if (again.arena_used_bytes() != kArena) return Differs("the allocator of an interpreter");
  return 0;
}

}  // namespace

int main() { return Probe(); }
