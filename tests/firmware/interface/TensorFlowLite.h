// What a sketch uses of Arduino.
#pragma once
#include <cstddef>

struct Printer {
  void begin(int);
  void println(size_t);
};
extern Printer Serial;
void delay(int);
