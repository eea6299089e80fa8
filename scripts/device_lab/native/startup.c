/* Reset code for Cortex-M3, M7 and M55 under QEMU. QEMU's -kernel writes every section where it is linked, so that
   only .bss is to be cleared. Arguments come through semihosting (SYS_GET_CMDLINE). */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

extern uint32_t __stack_top, __bss_start, __bss_end;
extern void __libc_init_array(void);
extern void initialise_monitor_handles(void);
extern int main(int, char **);
void Reset_Handler(void);
void *__dso_handle = 0;
void _init(void) {}
void _fini(void) {}

/* counter.h and faults.h read these. */
volatile uint32_t systick_wraps;
jmp_buf fault_recovery;
volatile int fault_recovery_is_set;

enum { SYS_WRITE0 = 4, SYS_GET_CMDLINE = 0x15, SYS_EXIT_EXTENDED = 0x20, ADP_STOPPED_INTERNAL_ERROR = 0x20023 };

static volatile uint32_t *reg(uint32_t address) { return (volatile uint32_t *)address; }

static int semihost(int op, void *arg) {
  register int r0 __asm__("r0") = op;
  register void *r1 __asm__("r1") = arg;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static void SysTick_Handler(void) { ++systick_wraps; }

static void recover(void) {
#if defined(__ARM_FEATURE_MVE)
  /* A fault in a tail-predicated loop: without this, vector instructions would go on to leave out lanes. */
  __asm__ volatile("vmsr fpscr, %0\n vmsr vpr, %1" : : "r"(4u << 16), "r"(0) : "memory"); /* LTPSIZE 4: none */
#endif
  longjmp(fault_recovery, 1);
}

static int is_thread_mode(void) {
  uint32_t exception;
  __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
  return exception == 0;
}

/* A call through a null pointer finds a vector there: the handlers are then called as functions. In an arena that is
   too small TFLM does that with the table of a class that it has written over. */
static void recover_if_called(void) {
  if (is_thread_mode() && fault_recovery_is_set) {
    fault_recovery_is_set = 0;
    recover();
  }
}

/* `frame`: r0-r3, r12, lr, pc, xPSR as they were at the fault. */
__attribute__((used)) static void handle_fault(uint32_t *frame) {
  recover_if_called();
  if (fault_recovery_is_set) {
    fault_recovery_is_set = 0;
    frame[6] = (uint32_t)recover & ~1u;
    frame[7] &= ~0x0600FC00u; /* no IT block, no interrupted load or vector instruction to go on with */
    return;
  }
  static char text[] = "FAULT\n";
  uint32_t block[2] = {ADP_STOPPED_INTERNAL_ERROR, 99};
  semihost(SYS_WRITE0, text);
  semihost(SYS_EXIT_EXTENDED, block);
  for (;;) {
  }
}
__attribute__((naked)) static void Fault_Handler(void) { __asm__ volatile("mov r0, sp\n b handle_fault"); }

__attribute__((section(".vectors"), used)) void *const vectors[16] = {
    &__stack_top,  (void *)Reset_Handler, (void *)Fault_Handler, (void *)Fault_Handler,
    (void *)Fault_Handler, (void *)Fault_Handler, (void *)Fault_Handler, (void *)Fault_Handler,
    0, 0, 0, (void *)Fault_Handler, (void *)Fault_Handler, 0, (void *)Fault_Handler, (void *)SysTick_Handler,
};

/* The memory at 0, with the vectors and on M3 and M7 the code, can be read only: a write through null is a fault. */
static void protect_memory_at_null(void) {
  *reg(0xE000ED98) = 0; /* MPU_RNR */
#if __ARM_ARCH >= 8
  *reg(0xE000ED9C) = 3u << 1;          /* MPU_RBAR: from 0, read only */
  *reg(0xE000EDA0) = 0x0007FFE0u | 1u; /* MPU_RLAR: 512 KiB, on */
#else
  *reg(0xE000ED9C) = 0;                                     /* MPU_RBAR: from 0 */
  *reg(0xE000EDA0) = (6u << 24) | (1u << 17) | (21u << 1) | 1u; /* MPU_RASR: read only, normal memory, 4 MiB, on */
#endif
  *reg(0xE000ED94) = 5; /* MPU_CTRL: on, the default map elsewhere */
}

static char line[4096];
static char *arguments[128];

static int split_arguments(void) {
  uint32_t block[2] = {(uint32_t)line, sizeof(line)};
  int count = 0;
  if (semihost(SYS_GET_CMDLINE, block) != 0) return 0;
  for (char *p = line; *p && count < 127;) {
    while (*p == ' ') *p++ = 0;
    if (!*p) break;
    arguments[count++] = p;
    while (*p && *p != ' ') ++p;
  }
  return count;
}

void Reset_Handler(void) {
  recover_if_called(); /* RAM is all zero when QEMU starts */
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *reg(0xE000ED88) |= 0xFu << 20; /* CPACR: CP10, CP11 (FPU and MVE) */
#endif
#if defined(__ARM_FEATURE_MVE)
  *reg(0xE000ED14) |= 1u << 19; /* CCR.LOB: low-overhead loops */
#endif
  __asm__ volatile("dsb\n isb" ::: "memory");
  for (uint32_t *p = &__bss_start; p < &__bss_end; ++p) *p = 0;
  protect_memory_at_null();
  initialise_monitor_handles();
  __libc_init_array();
  const int count = split_arguments();
  exit(main(count, arguments));
}
