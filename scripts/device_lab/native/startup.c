/* Reset code for Cortex-M3, M7 and M55 under QEMU. QEMU's -kernel writes every section where it is linked, so that
   only .bss is to be cleared. Arguments come through semihosting (SYS_GET_CMDLINE). */
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

static int semihost(int op, void *arg) {
  register int r0 __asm__("r0") = op;
  register void *r1 __asm__("r1") = arg;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static void Fault_Handler(void) {
  uint32_t block[2] = {0x20023 /* ADP_Stopped_InternalError */, 99};
  static char text[] = "FAULT\n";
  semihost(4, text);         /* SYS_WRITE0 */
  semihost(0x20, block);     /* SYS_EXIT_EXTENDED */
  for (;;) {
  }
}

/* counter.h reads it. */
volatile uint32_t systick_wraps;
static void SysTick_Handler(void) { ++systick_wraps; }

__attribute__((section(".vectors"), used)) void *const vectors[16] = {
    &__stack_top,  (void *)Reset_Handler, (void *)Fault_Handler, (void *)Fault_Handler,
    (void *)Fault_Handler, (void *)Fault_Handler, (void *)Fault_Handler, (void *)Fault_Handler,
    0, 0, 0, (void *)Fault_Handler, (void *)Fault_Handler, 0, (void *)Fault_Handler, (void *)SysTick_Handler,
};

static char line[4096];
static char *arguments[128];

void Reset_Handler(void) {
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: CP10, CP11 (FPU and MVE) */
#endif
#if defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t *)0xE000ED14 |= 1u << 19; /* CCR.LOB: low-overhead loops */
#endif
  __asm__ volatile("dsb\n isb" ::: "memory");
  for (uint32_t *p = &__bss_start; p < &__bss_end; ++p) *p = 0;
  initialise_monitor_handles();
  __libc_init_array();
  uint32_t block[2] = {(uint32_t)line, sizeof(line)};
  int count = 0;
  if (semihost(0x15, block) == 0) {
    for (char *p = line; *p && count < 127;) {
      while (*p == ' ') *p++ = 0;
      if (!*p) break;
      arguments[count++] = p;
      while (*p && *p != ' ') ++p;
    }
  }
  exit(main(count, arguments));
}
