// Runs a program on random inputs, its arena between bytes that nobody may write. program.h has `guarded` in place of
// `arena`: see test_program_firmware.py, which also draws the inputs.
#include <cstdio>

#include "program.h"
#include "runs.h"  // kRuns, kLeftOut: a run after which nothing is invoked, as when an image is given up; -1: none

namespace {

model::Program program;

void Fill(uint8_t* bytes, size_t count, uint32_t* state) {
  for (size_t at = 0; at < count; ++at) {
    *state = *state * 1664525u + 1013904223u;
    bytes[at] = static_cast<uint8_t>(*state >> 24);
  }
}

template <size_t kCount>
int Run(const size_t (&inputs)[kCount]) {
  std::memset(model::guarded, 0xA5, sizeof(model::guarded));
  uint32_t state = 12345;
  if (program.Invoke() == kTfLiteOk || program.output() != nullptr) return 4;  // without inputs
  for (int run = 0; run < kRuns; ++run) {
    if (run == kLeftOut) std::memset(program.input(), 0x3C, inputs[0]);
    for (size_t at = 0; at < kCount; ++at) {
      auto* const input = static_cast<uint8_t*>(program.input(static_cast<int>(at)));
      if (input == nullptr) return 2;
      Fill(input, inputs[at], &state);
    }
    if (program.Invoke() != kTfLiteOk) return 3;
    int number = 0;
    for (size_t bytes : model::Program::kOutputBytes) {
      const auto* const output = static_cast<const uint8_t*>(program.output(number));
      uint32_t digest = 2166136261u;  // FNV-1a
      for (size_t at = 0; at < bytes; ++at) digest = (digest ^ output[at]) * 16777619u;
      printf("output %d: %d bytes, digest %x\n", number++, static_cast<int>(bytes), static_cast<unsigned>(digest));
    }
  }
  for (size_t at = 0; at < 32; ++at) {
    if (model::guarded[at] != 0xA5 || model::guarded[sizeof(model::guarded) - 1 - at] != 0xA5) return 5;
  }
  return 0;
}

}  // namespace

int main() { return Run(model::Program::kInputBytes); }
