"""C++ files for a firmware that runs a model on TensorFlow Lite Micro."""

from typing import Literal

Planner = Literal["metadata", "table"]
"""Who places tensors when the firmware starts: TFLM's planner by the file's metadata, or a table of ``codegen``."""
PLANNERS: tuple[Planner, ...] = ("metadata", "table")
