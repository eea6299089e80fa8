"""CMSIS-NN on Cortex-M, as TFLM calls it: requests, sharing and the three profiles.

Three builds of one library: ``scalar`` C without SIMD (Cortex-M0, M3), ``dsp`` (M4, M7, M33), ``mve`` (Helium: M55,
M85). Requests and results were measured with the commits below, GCC 12.2 and QEMU 7.2 on Cortex-M3, M7 and M55.

TFLM calls CMSIS-NN from ``tensorflow/lite/micro/kernels/cmsis_nn``; an operator that is not there, and most that are
when their type is float, run in the reference kernels.
"""
