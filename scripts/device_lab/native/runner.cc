// A runner: executes .tflite models on TensorFlow Lite Micro as tflite_memopt's proof asks for it. The same file is
// built for the host and for Cortex-M under QEMU, where files, arguments and output go through semihosting.
// The protocol is described in docs/device_runner.md:
//
//   runner REQUESTS
//
// REQUESTS is a text file with one run a line: MODEL INPUTS OUTPUTS ARENA_BYTES SAMPLES SEARCH [KEPT]. An arena of 0
// bytes is the largest that there is; SEARCH is 1 to look for the smallest arena and 0 not to; KEPT has a digit for each
// input, 1 where only the first sample says it. Each run is answered by lines "key value", the last of them "done" or
// "error TEXT".

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "counter.h"
#include "faults.h"
#include "operators.h"
#include "session.h"
#include "tensorflow/lite/micro/debug_log.h"

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)

#ifdef __arm__
#define BIG_RAM __attribute__((section(".bigram"), aligned(16)))
constexpr size_t kMostModelBytes = 6u << 20;
constexpr size_t kMostArenaBytes = 6u << 20;
#else
#define BIG_RAM alignas(16)
constexpr size_t kMostModelBytes = 64u << 20;
constexpr size_t kMostArenaBytes = 64u << 20;
#endif

namespace {

constexpr size_t kGuardBytes = 1024;
constexpr uint8_t kGuard = 0x5A;
constexpr size_t kNameBytes = 64;
constexpr size_t kLineBytes = 512;
BIG_RAM uint8_t model_bytes[kMostModelBytes];
BIG_RAM uint8_t memory[kMostArenaBytes + 2 * kGuardBytes];
uint8_t* const arena = memory + kGuardBytes;
Resolver resolver;
bool quiet = false;
bool lacks_memory = false;  // a message said so: some kernels do not look whether they got what they asked for

struct Request {
  char model[kNameBytes], inputs[kNameBytes], outputs[kNameBytes];
  unsigned long arena_bytes, samples;
  int search;
  char kept[kLineBytes];  // digits, one an input; empty: none is kept
};

Session session;

bool ReadModel(const char* name) {
  FILE* file = fopen(name, "rb");
  if (file == nullptr) return false;
  const size_t size = fread(model_bytes, 1, sizeof(model_bytes), file);
  fclose(file);
  return size > 0 && size < sizeof(model_bytes);
}

// The model is read anew: a kernel that did not get its memory may have written anywhere.
bool Accepts(const char* model, size_t size) {
  bool accepted = false;
  lacks_memory = false;
  if (!ReadModel(model)) return false;
  const bool came_back = ComesBack([&] {
    accepted = session.Open(tflite::GetModel(model_bytes), resolver, arena, size);
    session.Close();
  });
  if (!came_back) session.Forget();
  return came_back && accepted && !lacks_memory;
}

// The smallest arena, a multiple of 16 bytes, that AllocateTensors accepts; 0 if none. Nothing below what is in use in
// the end can do.
size_t SmallestArena(const char* model, size_t used) {
  size_t low = (used + 15) / 16 - 1, high = low + 1;
  for (size_t step = 1; !Accepts(model, high * 16); step *= 2) {
    low = high;
    high += step;
    if (high * 16 > kMostArenaBytes) return 0;
  }
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (Accepts(model, middle * 16) ? high : low) = middle;
  }
  return high * 16;
}

// Returns what went wrong, or null.
const char* Invoke(FILE* inputs, FILE* outputs, const Request& request, uint64_t* instructions) {
  tflite::MicroInterpreter* const run = session.interpreter;
  const size_t digits = strlen(request.kept);
  for (unsigned long sample = 0; sample < request.samples; ++sample) {
    for (size_t i = 0; i < run->inputs_size(); ++i) {
      if (sample > 0 && i < digits && request.kept[i] == '1') continue;  // what the invocation before has left
      TfLiteTensor* const tensor = run->input(i);
      if (fread(tensor->data.data, 1, tensor->bytes, inputs) != tensor->bytes) return "the inputs file is too short";
    }
    const uint64_t start = Instructions();
    if (run->Invoke() != kTfLiteOk) return "Invoke failed";
    *instructions += Instructions() - start;
    for (size_t i = 0; i < run->outputs_size(); ++i) {
      const TfLiteTensor* const tensor = run->output(i);
      if (fwrite(tensor->data.data, 1, tensor->bytes, outputs) != tensor->bytes) return "cannot write the outputs";
    }
  }
  return nullptr;
}

const char* InvokeWithFiles(const Request& request, uint64_t* instructions) {
  FILE* const inputs = fopen(request.inputs, "rb");
  FILE* const outputs = fopen(request.outputs, "wb");
  const char* problem = "cannot open the files of inputs and outputs";
  if (inputs != nullptr && outputs != nullptr) problem = Invoke(inputs, outputs, request, instructions);
  if (inputs != nullptr) fclose(inputs);
  if (outputs != nullptr && fclose(outputs) != 0 && problem == nullptr) problem = "cannot write the outputs";
  return problem;
}

bool GuardsAreWhole(size_t size) {
  for (size_t i = 0; i < kGuardBytes; ++i)
    if (memory[i] != kGuard || arena[size + i] != kGuard) return false;
  return true;
}

void Tell(const char* key, uint64_t value) {
  // newlib's small printf knows no 64-bit numbers.
  char digits[24];
  char* at = digits + sizeof(digits) - 1;
  *at = 0;
  do *--at = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  printf("%s %s\n", key, at);
}

// Returns what went wrong, or null. `used` is what the arena holds in the end.
const char* RunModel(const Request& request, size_t arena_bytes, size_t* used) {
  if (!session.Open(tflite::GetModel(model_bytes), resolver, arena, arena_bytes)) return "AllocateTensors failed";
  *used = session.interpreter->arena_used_bytes();
  Tell("head", session.allocator->GetNonPersistentUsedBytes());
  Tell("tail", session.allocator->GetPersistentUsedBytes());
  uint64_t instructions = 0;
  const char* const problem = InvokeWithFiles(request, &instructions);
  if (problem != nullptr) return problem;
  if (!GuardsAreWhole(arena_bytes)) return "bytes outside the arena were written";
  if (instructions > 0) Tell("instructions", instructions);
  return nullptr;
}

const char* TellSmallestArena(const char* model, size_t used) {
  quiet = true;
  const size_t smallest = SmallestArena(model, used);
  quiet = false;
  if (smallest == 0) return "no arena of this runner is large enough";
  Tell("smallest_arena", smallest);
  return nullptr;
}

const char* Prepare(const Request& request, size_t arena_bytes) {
  if (arena_bytes > kMostArenaBytes) return "this runner has no arena of that size";
  if (!ReadModel(request.model)) return "cannot read the model, or it is too large for this runner";
  memset(memory, kGuard, arena_bytes + 2 * kGuardBytes);
  return nullptr;
}

// Prints the answer; false if the runner cannot go on.
bool Answer(const Request& request) {
  printf("model %s\nkernels %s\ncommit %s\n", request.model, TEXT(RUNNER_KERNELS), TEXT(RUNNER_COMMIT));
  Tell("pointer_bits", 8 * sizeof(void*));
  const size_t arena_bytes = request.arena_bytes == 0 ? kMostArenaBytes : request.arena_bytes;
  bool came_back = true;
  const char* problem = Prepare(request, arena_bytes);
  if (problem == nullptr) {
    size_t used = 0;
    came_back = ComesBack([&] { problem = RunModel(request, arena_bytes, &used); });
    if (!came_back) problem = "a fault: memory was read or written that may not be";
    if (came_back) session.Close();
    if (problem == nullptr && request.search != 0) problem = TellSmallestArena(request.model, used);
  }
  if (problem != nullptr) printf("error %s\n", problem);
  else printf("done\n");
  fflush(stdout);
  return came_back;
}

int AnswerAll(const char* name) {
  FILE* const requests = fopen(name, "r");
  if (requests == nullptr) {
    printf("error cannot open the requests\n");
    return 1;
  }
  Request request;
  static_assert(kNameBytes == 64 && kLineBytes == 512, "the widths below");
  char line[kLineBytes];
  while (fgets(line, sizeof(line), requests) != nullptr) {
    request.kept[0] = 0;
    if (sscanf(line, "%63s %63s %63s %lu %lu %d %511s", request.model, request.inputs, request.outputs,
               &request.arena_bytes, &request.samples, &request.search, request.kept) < 6) {
      break;
    }
    if (!Answer(request)) return 3;
  }
  fclose(requests);
  return 0;
}

}  // namespace

// TFLM ends each message by a piece of its own, "\r\n".
extern "C" void DebugLog(const char* format, va_list args) {
  lacks_memory = lacks_memory || strncmp(format, "Failed to ", 10) == 0;
  if (quiet) return;
  if (strcmp(format, "\r\n") == 0) {
    printf("\n");
    return;
  }
  printf("log ");
  vprintf(format, args);
}
extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return vsnprintf(buffer, size, format, args);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    printf("usage: runner REQUESTS (see docs/device_runner.md)\n");
    return 2;
  }
  AddOperators(resolver);
  CatchFaults();
  StartCounter();
  return AnswerAll(argv[1]);
}
