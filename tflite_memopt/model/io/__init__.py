"""Read and write .tflite files: the only code that knows the file format."""

DOOR = "files metadata offline_plan plan_label reader writer"
"""The modules that other folders import; the rest is private to this one."""
