"""Read and write .tflite files: the only code that knows the file format."""

from __future__ import annotations

DOOR = "files metadata offline_plan plan_label reader writer"
"""The modules that other folders import; the rest is private to this one."""
