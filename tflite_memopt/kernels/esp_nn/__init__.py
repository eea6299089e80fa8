"""esp-nn on the ESP32 family, as esp-tflite-micro calls it: scratch, sharing and three profiles.

``generic``: the C code (ESP32, ESP32-C3 and other chips without vector instructions), compiled and measured on the
host. ``s3``, ``p4``: assembly and intrinsics; their scratch is read from the source, and no kernel of theirs was run,
so that nothing is permitted where they are called.

An operator that has no file in esp-tflite-micro's kernels/esp_nn, and most that have when their type is not int8, run
in TFLM's reference kernels.
"""
