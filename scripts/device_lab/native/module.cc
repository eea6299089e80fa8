// A runner as a WebAssembly module: TensorFlow Lite Micro with one kernel library, and functions that the tool calls
// (tflite_memopt/equivalence/module.py). It imports nothing, so that a hostile model reaches nothing but this memory.
//
// A model is run so: Reserve, write the model to ModelAt, Watch what is wanted, Open, then for each sample write the
// inputs, Invoke, and read outputs and trace. Memory has no other use: what a run left there ends with the instance.

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "operators.h"
#include "session.h"
#include "tensorflow/lite/micro/debug_log.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/micro_context.h"
#include "tensorflow/lite/micro/micro_interpreter_graph.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)
#define EXPORTED(name) extern "C" __attribute__((export_name(name)))

namespace {

constexpr int kInterface = 1;  // counts up when the functions below change
constexpr size_t kPageBytes = 65536;
constexpr size_t kGuardBytes = 1024;
constexpr size_t kLowBytes = 1024;  // where null pointers write: the end of the stack, which nothing else reaches
constexpr size_t kLogBytes = 2048;
constexpr uint8_t kGuard = 0x5A;

char log_text[kLogBytes];
size_t log_size = 0;
bool lacks_memory = false;  // a message said so: some kernels do not look whether they got what they asked for

uint8_t* model_at = nullptr;
uint8_t* arena = nullptr;
size_t arena_size = 0;
Resolver resolver;
Session session;

uint8_t* Aligned(uint8_t* address) { return reinterpret_cast<uint8_t*>((reinterpret_cast<size_t>(address) + 15) & ~15); }

// What tensors held, one after the other as they were watched: number of the watch, bytes, the bytes, up to 4 zeros.
class Trace : public tflite::MicroProfilerInterface {
 public:
  struct Watch {
    int graph, moment, tensor;
  };
  std::vector<Watch> watches;
  std::vector<uint8_t> seen;
  bool is_on = false;

  uint32_t BeginEvent(const char*) override {
    Look(0);
    return 0;
  }
  void EndEvent(uint32_t) override { Look(1); }

 private:
  void Look(int after) {
    if (!is_on) return;
    tflite::MicroContext* const context = tflite::GetMicroContext(&session.interpreter->context());
    auto& graph = static_cast<tflite::MicroInterpreterGraph&>(context->graph());
    const int here = graph.GetCurrentSubgraphIndex(), moment = 2 * graph.GetCurrentOperatorIndex() + after;
    for (size_t i = 0; i < watches.size(); ++i)
      if (watches[i].graph == here && watches[i].moment == moment)
        Add(i, graph.GetAllocations()[here].tensors[watches[i].tensor]);
  }
  void Add(uint32_t number, const TfLiteEvalTensor& tensor) {
    size_t bytes = 0;
    if (tensor.data.raw != nullptr) tflite::TfLiteEvalTensorByteLength(&tensor, &bytes);
    const uint32_t head[2] = {number, static_cast<uint32_t>(bytes)};
    const size_t at = seen.size();
    seen.resize(at + sizeof(head) + ((bytes + 3) & ~size_t{3}));
    memcpy(seen.data() + at, head, sizeof(head));
    if (bytes > 0) memcpy(seen.data() + at + sizeof(head), tensor.data.raw, bytes);
  }
};

Trace trace;

void Prepare() {
  if (resolver.GetRegistrationLength() == 0) AddOperators(resolver);
}

bool AreWhole(const uint8_t* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] != kGuard) return false;
  return true;
}

// Of the first bytes of the memory, which a compiler takes for unreachable.
uint8_t* Low() {
  uint8_t* volatile start = reinterpret_cast<uint8_t*>(16);
  return start;
}

bool GuardsAreWhole() {
  return AreWhole(arena - kGuardBytes, kGuardBytes) && AreWhole(arena + arena_size, kGuardBytes) &&
         AreWhole(Low(), kLowBytes - 16);
}

}  // namespace

EXPORTED("interface") int Interface() { return kInterface; }
EXPORTED("kernels") const char* Kernels() { return TEXT(RUNNER_KERNELS) " " TEXT(RUNNER_COMMIT); }

// Whether there is a kernel for a built-in operator, by its number in the schema.
EXPORTED("knows") bool Knows(int code) {
  Prepare();
  return resolver.FindOp(static_cast<tflite::BuiltinOperator>(code)) != nullptr;
}

// Makes room for a model and an arena; false if there is none.
EXPORTED("reserve") bool Reserve(size_t model_bytes, size_t arena_bytes) {
  Prepare();
  const size_t wanted = model_bytes + arena_bytes + 2 * kGuardBytes + 64;
  const size_t grown = __builtin_wasm_memory_grow(0, (wanted + kPageBytes - 1) / kPageBytes);
  if (grown == static_cast<size_t>(-1)) return false;
  model_at = Aligned(reinterpret_cast<uint8_t*>(grown * kPageBytes));
  arena = Aligned(model_at + model_bytes) + kGuardBytes;
  arena_size = arena_bytes;
  return true;
}
EXPORTED("model") uint8_t* ModelAt() { return model_at; }

// The tensor is traced at each moment 2 * operator, before it runs, or 2 * operator + 1, after it.
EXPORTED("watch") void Watch(int graph, int moment, int tensor) { trace.watches.push_back({graph, moment, tensor}); }

// Fills the arena with a byte and sets the model up in it; false if TFLM refuses one of them.
EXPORTED("open") bool Open(int fill) {
  memset(arena - kGuardBytes, kGuard, arena_size + 2 * kGuardBytes);
  memset(arena, fill, arena_size);
  memset(Low(), kGuard, kLowBytes - 16);
  const bool is_open = session.Open(tflite::GetModel(model_at), resolver, arena, arena_size, &trace);
  return is_open && !lacks_memory && GuardsAreWhole();
}
EXPORTED("head") size_t Head() { return session.allocator->GetNonPersistentUsedBytes(); }
EXPORTED("tail") size_t Tail() { return session.allocator->GetPersistentUsedBytes(); }
EXPORTED("used") size_t Used() { return session.interpreter->arena_used_bytes(); }

EXPORTED("inputs") size_t Inputs() { return session.interpreter->inputs_size(); }
EXPORTED("input") void* Input(size_t i) { return session.interpreter->input(i)->data.data; }
EXPORTED("input_bytes") size_t InputBytes(size_t i) { return session.interpreter->input(i)->bytes; }
EXPORTED("outputs") size_t Outputs() { return session.interpreter->outputs_size(); }
EXPORTED("output") void* Output(size_t i) { return session.interpreter->output(i)->data.data; }
EXPORTED("output_bytes") size_t OutputBytes(size_t i) { return session.interpreter->output(i)->bytes; }

// 0; 1 if an operator failed, 2 if it wrote outside the arena.
EXPORTED("invoke") int Invoke() {
  trace.seen.clear();
  trace.is_on = !trace.watches.empty();
  const bool done = session.interpreter->Invoke() == kTfLiteOk;
  trace.is_on = false;
  return !done ? 1 : GuardsAreWhole() ? 0 : 2;
}
EXPORTED("trace") const uint8_t* TraceAt() { return trace.seen.data(); }
EXPORTED("trace_bytes") size_t TraceBytes() { return trace.seen.size(); }

EXPORTED("log") const char* Log() { return log_text; }
EXPORTED("log_bytes") size_t LogBytes() { return log_size; }

extern "C" void DebugLog(const char* format, va_list args) {
  lacks_memory = lacks_memory || strncmp(format, "Failed to ", 10) == 0;
  const int written = vsnprintf(log_text + log_size, kLogBytes - log_size, format, args);
  if (written > 0) log_size = log_size + written < kLogBytes ? log_size + written : kLogBytes - 1;
}
extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return vsnprintf(buffer, size, format, args);
}
