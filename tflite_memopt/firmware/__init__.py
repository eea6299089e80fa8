"""C++ files for a firmware that runs a model on TensorFlow Lite Micro."""

from typing import Literal

DOOR = "cpp_text describe description esphome files plan_table resolver self_test"
"""Modules that other folders may import."""

Planner = Literal["metadata", "table"]
"""The source of offsets when the firmware starts: the file's metadata, read by TFLM's planner, or a C++ table."""
PLANNERS: tuple[Planner, ...] = ("metadata", "table")
