// Arm's DSP instructions as CMSIS-NN calls them, in plain C, for builds of its DSP code on machines that have none.
// What each does is in the Armv7-M Architecture Reference Manual (DDI 0403), chapter A7.7, under the instruction's name;
// dsp_instructions_test.c holds each against a slow reading of that.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSP_FUNCTION static inline __attribute__((always_inline))

DSP_FUNCTION int32_t dsp_low(uint32_t x) { return (int16_t)x; }
DSP_FUNCTION int32_t dsp_high(uint32_t x) { return (int32_t)x >> 16; }
DSP_FUNCTION uint32_t dsp_pack(int32_t high, int32_t low) { return (uint32_t)high << 16 | (uint16_t)low; }
DSP_FUNCTION int32_t dsp_clamped(int64_t x, int64_t low, int64_t high) {
  return (int32_t)(x < low ? low : x > high ? high : x);
}

// Rotation to the right, by any number of bits.
DSP_FUNCTION uint32_t ROR(uint32_t x, uint32_t bits) { return x >> (bits & 31) | x << (-bits & 31); }

// Bytes 0 and 2, each as a signed half word; with addition, half word by half word.
DSP_FUNCTION uint32_t SXTB16(uint32_t x) { return dsp_pack((int8_t)(x >> 16), (int8_t)x); }
DSP_FUNCTION uint32_t SXTAB16(uint32_t to, uint32_t x) {
  return dsp_pack(dsp_high(to) + (int8_t)(x >> 16), dsp_low(to) + (int8_t)x);
}
#define __sxtb16 SXTB16  // as Arm's compilers call it; CMSIS-NN does, too
DSP_FUNCTION uint32_t SXTB16_RORn(uint32_t x, uint32_t bits) { return SXTB16(ROR(x, bits)); }
DSP_FUNCTION uint32_t SXTAB16_RORn(uint32_t to, uint32_t x, uint32_t bits) { return SXTAB16(to, ROR(x, bits)); }

// Products of half words: bottom by bottom, top by top, both together; with addition, which wraps.
DSP_FUNCTION int32_t SMULBB(uint32_t a, uint32_t b) { return dsp_low(a) * dsp_low(b); }
DSP_FUNCTION int32_t SMULTT(uint32_t a, uint32_t b) { return dsp_high(a) * dsp_high(b); }
DSP_FUNCTION int32_t SMLABB(uint32_t a, uint32_t b, int32_t to) {
  return (int32_t)((uint32_t)SMULBB(a, b) + (uint32_t)to);
}
DSP_FUNCTION int32_t SMLATT(uint32_t a, uint32_t b, int32_t to) {
  return (int32_t)((uint32_t)SMULTT(a, b) + (uint32_t)to);
}
DSP_FUNCTION uint32_t SMLAD(uint32_t a, uint32_t b, uint32_t to) {
  return (uint32_t)SMULBB(a, b) + (uint32_t)SMULTT(a, b) + to;
}
DSP_FUNCTION int64_t SMLALD(uint32_t a, uint32_t b, int64_t to) {
  return (int64_t)((uint64_t)((int64_t)SMULBB(a, b) + SMULTT(a, b)) + (uint64_t)to);
}

// Half words from two words; the second is shifted first, for PKHTB with its sign.
#define PKHBT(bottom, top, bits) dsp_pkhbt((uint32_t)(bottom), (uint32_t)(top), bits)
#define PKHTB(top, bottom, bits) dsp_pkhtb((uint32_t)(top), (uint32_t)(bottom), bits)
DSP_FUNCTION uint32_t dsp_pkhbt(uint32_t bottom, uint32_t top, unsigned bits) {
  return (bottom & 0xFFFF) | (top << bits & 0xFFFF0000);
}
DSP_FUNCTION uint32_t dsp_pkhtb(uint32_t top, uint32_t bottom, unsigned bits) {
  return (top & 0xFFFF0000) | ((uint32_t)((int32_t)bottom >> bits) & 0xFFFF);
}

// Sums and differences: saturated words, saturated bytes and half words, half words that wrap.
DSP_FUNCTION int32_t QADD(int32_t a, int32_t b) { return dsp_clamped((int64_t)a + b, INT32_MIN, INT32_MAX); }
DSP_FUNCTION uint32_t QSUB16(uint32_t a, uint32_t b) {
  return dsp_pack(dsp_clamped(dsp_high(a) - dsp_high(b), INT16_MIN, INT16_MAX),
                  dsp_clamped(dsp_low(a) - dsp_low(b), INT16_MIN, INT16_MAX));
}
DSP_FUNCTION uint32_t QSUB8(uint32_t a, uint32_t b) {
  uint32_t result = 0;
  for (int bits = 0; bits < 32; bits += 8) {
    const int32_t difference = (int8_t)(a >> bits) - (int8_t)(b >> bits);
    result |= (uint32_t)(uint8_t)dsp_clamped(difference, INT8_MIN, INT8_MAX) << bits;
  }
  return result;
}
DSP_FUNCTION uint32_t SADD16(uint32_t a, uint32_t b) {
  return dsp_pack(dsp_high(a) + dsp_high(b), dsp_low(a) + dsp_low(b));
}

#ifdef __cplusplus
}
#endif
