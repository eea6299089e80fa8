// Windows of audio frames that overlap by half. A fed program takes each frame once, from the first one of its window to
// the last one. So two of them run side by side, each in an arena of its own, half a window apart: no frame is kept, and
// there is a result for every half window.
#include <cstdio>

#include "program.h"

namespace {

alignas(16) uint8_t other_arena[model::kArenaBytes];
model::Program first;
model::Program second(other_arena);
int frames = 0, windows = 0;

void Use(const void* scores) {
  printf("window %d: first byte of the result %d\n", ++windows, *static_cast<const int8_t*>(scores));
}

void Take(model::Program& program, const float* frame) {
  if (program.Feed(frame) != kTfLiteOk) return;  // the log says why; the next frame begins another window
  if (program.Done()) Use(program.output());     // until the next frame is fed
}

// The callback of your front end, for each frame of features, or of samples: floats here, int8 and uint8 alike.
void OnFrame(const float* frame) {
  Take(first, frame);
  if (frames >= model::Program::kRows / 2) Take(second, frame);
  ++frames;
}

}  // namespace

// In place of a microphone: two windows and a half.
int main() {
  static float frame[model::Program::kRowBytes];
  for (int at = 0; at < 2 * model::Program::kRows + model::Program::kRows / 2; ++at) {
    for (size_t i = 0; i < model::Program::kRowBytes; ++i) {
      frame[i] = model::Program::kScale * static_cast<float>((at * 5 + static_cast<int>(i) * 11) % 100 - 50);
    }
    OnFrame(frame);
  }
  return windows == 4 ? 0 : 1;
}
