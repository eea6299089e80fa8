"""What the firmware has: operator kinds, kernels, chips, builds of TFLM, and their faults."""
