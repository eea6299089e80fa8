"""What each operator's reference kernel takes from TFLM's arena, one row per operator.

``table.py`` is the index; the other files hold the rules by family. Source of every figure: tflite-micro
commit 90b983c2b3f1 (2026-08-20), reference kernels, without tensor compression.
"""
