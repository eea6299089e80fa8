"""Define the error tree. Every message names the fault, its location, and the fix."""

from __future__ import annotations


class MemoptError(Exception):
    """Base of every error that the tool raises on purpose."""


class UsageError(MemoptError):
    """The request itself is wrong: a path, a flag, a name."""


class OptionError(UsageError):
    """A value of an option is none of its valid ones. ``field``: the option in Python; ``advice``: what to do."""

    def __init__(self, field: str, value: object, advice: str) -> None:
        super().__init__(f"option {field}={value!r}: {advice}")
        self.field, self.advice = field, advice


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


def printable(text: str) -> str:
    """Text of a file as a terminal and XML take it: on one line, control characters by number, no byte but UTF-8."""
    shown = "".join(each if each.isprintable() or _is_surrogate(each) else _numbered(each) for each in text)
    return shown.encode("utf-8", "replace").decode("utf-8")


def _is_surrogate(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


def _numbered(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
