// Feeds a program random images, its arena between bytes that nobody may write. program.h has `guarded` in place of
// `arena`: see test_feed_firmware.py, which also draws the images, and what is beside them.
#include <cstdio>

#include "program.h"
#include "runs.h"  // kRuns; kLeftOut: before this run half an image is fed and given up; -1: none; kBeside: inputs

namespace {

model::Program program;
uint8_t image[model::Program::kRows * model::Program::kRowBytes];
uint8_t pixels[3 * model::Program::kRowBytes];  // as Feed may take them as well
float floats[3 * model::Program::kRowBytes];

void Fill(uint8_t* bytes, size_t count, uint32_t* state) {
  for (size_t at = 0; at < count; ++at) {
    *state = *state * 1664525u + 1013904223u;
    bytes[at] = static_cast<uint8_t>(*state >> 24);
  }
}

// Writes the inputs beside the image, which come before it in the model.
template <typename Any>
bool WriteBeside([[maybe_unused]] Any& any, [[maybe_unused]] uint32_t* state) {
  if constexpr (kBeside > 0) {
    if (any.Feed(image) == kTfLiteOk) return false;  // without them
    for (int at = 0; at < kBeside; ++at) {
      auto* const input = static_cast<uint8_t*>(any.input(at));
      if (input == nullptr) return false;
      Fill(input, Any::kInputBytes[at], state);
    }
  }
  return true;
}

int Run() {
  std::memset(model::guarded, 0xA5, sizeof(model::guarded));
  uint32_t state = 12345;
  for (int run = 0; run < kRuns; ++run) {
    if (run == kLeftOut) {
      std::memset(image, 0x3C, sizeof(image));
      uint32_t other = 1;
      if (!WriteBeside(program, &other)) return 6;
      if (program.Feed(image, model::Program::kRows / 2) != kTfLiteOk || program.Done()) return 4;
      program.Reset();
    }
    if (!WriteBeside(program, &state)) return 6;
    Fill(image, sizeof(image), &state);
    for (int row = 0; row < model::Program::kRows;) {
      const int count = run % 2 == 0 || row + 3 > model::Program::kRows ? 1 : 3;
      if (row > 0 && (program.Done() || program.output() != nullptr)) return 2;
      const uint8_t* const from = image + row * model::Program::kRowBytes;
      const size_t bytes = static_cast<size_t>(count) * model::Program::kRowBytes;
      for (size_t at = 0; at < bytes; ++at) {
        const int value = static_cast<int8_t>(from[at]);
        pixels[at] = static_cast<uint8_t>(value + 128);
        floats[at] = model::Program::kScale * static_cast<float>(value - model::Program::kZeroPoint);
      }
      const TfLiteStatus status = run % 3 == 0   ? program.Feed(from, count)
                                  : run % 3 == 1 ? program.Feed(floats, count)
                                                 : program.FeedPixels(pixels, count);
      if (status != kTfLiteOk) return 3;
      std::memset(image + row * model::Program::kRowBytes, 0x77, count * model::Program::kRowBytes);
      row += count;
    }
    if (!program.Done()) return 2;
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

int main() { return Run(); }
