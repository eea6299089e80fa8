"""The one error tree. Every message names the fault, its location, and the fix."""

from __future__ import annotations


class MemoptError(Exception):
    """Base of every error that the tool raises on purpose."""


class UsageError(MemoptError):
    """The request itself is wrong: a path, a flag, a name."""


class ModelFormatError(MemoptError):
    """The bytes are not a well-formed .tflite model."""


class UnsupportedModelError(MemoptError):
    """The model is well formed, but holds something that cannot be planned for a microcontroller."""


class InfeasibleError(MemoptError):
    """A schedule or plan breaks its own rules, or no solution exists. Raised by checkers and solvers."""


class EquivalenceError(MemoptError):
    """The optimized model does not compute the same as the original."""


class OutputError(MemoptError):
    """The result could not be written."""
