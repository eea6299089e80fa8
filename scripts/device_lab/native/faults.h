// Survives a fault: kernels that do not check AllocatePersistentBuffer write through a null pointer when the arena is
// too small (CMSIS-NN's FULLY_CONNECTED and UNIDIRECTIONAL_SEQUENCE_LSTM do), where others refuse the model.
#pragma once

#include <csetjmp>
#include <cstdint>

#ifdef __arm__
extern "C" jmp_buf fault_recovery;  // startup.c
extern "C" volatile int fault_recovery_is_set;

inline void CatchFaults() {}

// newlib's setjmp leaves out the registers d8 to d15, which a function must not change either.
inline uint64_t kept_registers[8];
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
inline void KeepRegisters() { __asm__ volatile("vstmia %0, {d8-d15}" : : "r"(kept_registers) : "memory"); }
inline void RestoreRegisters() { __asm__ volatile("vldmia %0, {d8-d15}" : : "r"(kept_registers) : "memory"); }
#else
inline void KeepRegisters() {}
inline void RestoreRegisters() {}
#endif

// Calls `attempt`; false if a fault ended it.
template <typename Attempt>
bool ComesBack(Attempt attempt) {
  KeepRegisters();
  if (setjmp(fault_recovery) != 0) {
    RestoreRegisters();
    return false;
  }
  fault_recovery_is_set = 1;
  attempt();
  fault_recovery_is_set = 0;
  return true;
}
#else
#include <csignal>
#include <initializer_list>

inline sigjmp_buf fault_recovery;
inline volatile sig_atomic_t fault_recovery_is_set = 0;

inline void OnFault(int number) {
  if (fault_recovery_is_set == 0) {
    signal(number, SIG_DFL);
    return;  // the instruction faults again
  }
  fault_recovery_is_set = 0;
  siglongjmp(fault_recovery, 1);
}

inline void CatchFaults() {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, OnFault);
}

template <typename Attempt>
bool ComesBack(Attempt attempt) {
  if (sigsetjmp(fault_recovery, 1) != 0) return false;
  fault_recovery_is_set = 1;
  attempt();
  fault_recovery_is_set = 0;
  return true;
}
#endif
