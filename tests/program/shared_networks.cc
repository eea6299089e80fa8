// Runs the networks of networks.h in random order on random inputs, their arena between bytes that nobody may write.
// models.h has `guarded` in place of `arena`: see test_sharing.py. Each network draws inputs of its own.
#include <cstdio>

#include "models.h"
#include "networks.h"  // NETWORKS(X), kCount, kRuns

namespace {

models::Models all;
uint32_t seeds[kCount];

uint32_t Next(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 24;
}

template <size_t kInputs, size_t kOutputs>
int Run(const char* name, models::Network& network, const size_t (&inputs)[kInputs], const size_t (&outputs)[kOutputs],
        uint32_t* seed) {
  if (network.Invoke() == kTfLiteOk || network.output() != nullptr) return 4;  // another one ran in between
  for (size_t at = 0; at < kInputs; ++at) {
    auto* const input = static_cast<uint8_t*>(network.input(static_cast<int>(at)));
    if (input == nullptr) return 2;
    for (size_t byte = 0; byte < inputs[at]; ++byte) input[byte] = static_cast<uint8_t>(Next(seed));
  }
  if (network.Invoke() != kTfLiteOk) return 3;
  for (size_t at = 0; at < kOutputs; ++at) {
    const auto* const output = static_cast<const uint8_t*>(network.output(static_cast<int>(at)));
    uint32_t digest = 2166136261u;  // FNV-1a
    for (size_t byte = 0; byte < outputs[at]; ++byte) digest = (digest ^ output[byte]) * 16777619u;
    printf("%s output %d: %d bytes, digest %x\n", name, static_cast<int>(at), static_cast<int>(outputs[at]),
           static_cast<unsigned>(digest));
  }
  return 0;
}

}  // namespace

int main() {
  std::memset(models::guarded, 0xA5, sizeof(models::guarded));
  for (uint32_t& seed : seeds) seed = 12345;
  uint32_t order = 7;
  unsigned last = kCount;
  for (int run = 0; run < kRuns; ++run) {
    unsigned chosen = Next(&order) % kCount;
    if (chosen == last) chosen = (chosen + 1) % kCount;
    last = chosen;
    unsigned number = 0;
    int code = 0;
#define RUN(name)                                                                                               \
  if (number == chosen)                                                                                         \
    code = Run(#name, all.name, ::name::Program::kInputBytes, ::name::Program::kOutputBytes, &seeds[number]);   \
  ++number;
    NETWORKS(RUN)
    if (code != 0) return code;
  }
  for (size_t at = 0; at < 32; ++at) {
    if (models::guarded[at] != 0xA5 || models::guarded[sizeof(models::guarded) - 1 - at] != 0xA5) return 5;
  }
  return 0;
}
