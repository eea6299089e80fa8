// Instructions that the core has executed. QEMU with `-icount shift=0` lets one nanosecond pass for each, so that
// SysTick, which runs at a known clock, counts them in steps of `kNanosecondsPerTick`. The host does not count.
#pragma once

#include <cstdint>

#ifdef __arm__
extern "C" volatile uint32_t systick_wraps;  // startup.c

#ifdef __ARM_FEATURE_MVE
constexpr double kNanosecondsPerTick = 31.25;  // mps3-an547: 32 MHz
#else
constexpr double kNanosecondsPerTick = 40.0;  // mps2-an385, mps2-an500: 25 MHz
#endif
constexpr uint32_t kTicksPerWrap = 1u << 24;

inline void StartCounter() {
  volatile uint32_t* const systick = reinterpret_cast<volatile uint32_t*>(0xE000E010);
  systick[1] = kTicksPerWrap - 1;  // reload value
  systick[2] = 0;                  // the current value is cleared by a write
  systick[0] = 7;                  // processor clock, interrupt, on
}

inline uint64_t Instructions() {
  volatile uint32_t* const systick = reinterpret_cast<volatile uint32_t*>(0xE000E010);
  uint32_t wraps, left;
  do {  // again if the counter wrapped between the two readings
    wraps = systick_wraps;
    left = systick[2];
  } while (wraps != systick_wraps);
  const uint64_t ticks = static_cast<uint64_t>(wraps) * kTicksPerWrap + (kTicksPerWrap - 1 - left);
  return static_cast<uint64_t>(static_cast<double>(ticks) * kNanosecondsPerTick);
}
#else
inline void StartCounter() {}
inline uint64_t Instructions() { return 0; }
#endif
