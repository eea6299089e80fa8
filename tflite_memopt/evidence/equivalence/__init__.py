"""Verify that two models compute the same: interpreters in subprocesses, inputs, comparison, verdicts."""

DOOR = "adapter baseline compare inputs interface judge runner sequences shapes subject verdict verification"
"""Modules that other folders may import."""
