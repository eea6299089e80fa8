// A camera that gives lines: the image is never in RAM as a whole. For a program of
//   tflite-memopt optimize model.tflite -o program --target ... --feed auto --parts auto
//   tflite-memopt codegen program -o firmware
#include <cstdio>

#include "program.h"

namespace {

model::Program program;
int images = 0;

void Use(const void* scores) {
  printf("image %d: first byte of the result %d\n", ++images, *static_cast<const int8_t*>(scores));
}

// The callback of your camera, outside of an interrupt: a line as it is, a byte a pixel and channel.
void OnLine(const uint8_t* line) {
  if (program.FeedPixels(line) != kTfLiteOk) return;  // the log says why; the next line begins another image
  if (program.Done()) Use(program.output());          // until the next line is fed
}

// The callback at the start of a frame: what is left of one that was not complete is given up.
void OnFrameStart() { program.Reset(); }

}  // namespace

// In place of a camera: three images, the second of which breaks off.
int main() {
  static uint8_t line[model::Program::kRowBytes];
  for (int image = 0; image < 3; ++image) {
    OnFrameStart();
    for (int at = 0; at < (image == 1 ? model::Program::kRows / 2 : model::Program::kRows); ++at) {
      for (size_t i = 0; i < sizeof(line); ++i) line[i] = static_cast<uint8_t>(at * 7 + static_cast<int>(i) * 3);
      OnLine(line);
    }
  }
  return images == 2 ? 0 : 1;
}
