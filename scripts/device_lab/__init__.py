"""Runners of TensorFlow Lite Micro on the host and, under QEMU, on Cortex-M: built from sources that lie elsewhere."""
