"""C++ files for a firmware that runs a model on TensorFlow Lite Micro."""

from typing import Literal

Planner = Literal["metadata", "table"]
"""The source of offsets when the firmware starts: the file's metadata, read by TFLM's planner, or a C++ table."""
PLANNERS: tuple[Planner, ...] = ("metadata", "table")
