"""Define the error tree. Every message names the fault, its location, and the fix."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from typing import Any


class ErrorKind(str, Enum):
    """What is wrong, for programs: messages may change, these do not. An error whose class says enough has none."""

    FOREIGN_TENSOR = "a tensor is not in its subgraph"
    WRITTEN_INPUT = "an operator writes an input of its subgraph, or a constant"
    LINKS = "the links of a tensor do not match the operators"
    TWO_PRODUCERS = "two operators write a tensor"
    CYCLE = "operators form a cycle"
    ORDER = "an operator reads what a later one writes"
    UNWRITTEN = "something reads or returns what nothing writes"
    WINDOW = "a window has a size, stride, or dilation of zero, or none"
    EMPTY = "an operator reads a tensor without elements"
    OPERAND = "a constant operand requests an impossible shape or block"
    DYNAMIC = "a shape is dynamic"
    TOO_LARGE = "a tensor or a file is larger than any microcontroller holds"
    NO_SUCH_TYPE = "TFLM has no tensors of this type"
    BUFFER = "a constant has more or fewer bytes than its shape"
    RECURSION = "subgraphs call each other in a circle, or too deep"
    NO_SUCH_OPERATOR = "TFLM does not have an operator"
    NO_SUCH_SUBGRAPH = "an operator calls a subgraph that is not there"
    NOT_A_FILE = "a path is a folder, a device, or missing"
    EXISTS = "a file is there already"
    IS_INPUT = "an output is the input itself"
    NOT_WRITABLE = "a place cannot be written"
    FORMAT = "a file is of another format, or of another version of it"
    DAMAGED = "a file is of the right format, but cut short or damaged"
    UNKNOWN = "a name is none of those that there are"
    NAME = "a name is taken, or cannot be one"
    SYNTAX = "a text is not of the form that is read"
    EXCLUDED = "an option does not work with another one, or with this target"
    NO_TARGET = "what is asked for depends on kernels, and no target is named"
    NOT_INSTALLED = "a package is not installed"
    UNREACHABLE = "a service does not answer"
    RUNNER = "a runner cannot be started, or does not run this model for this target"
    SAMPLES = "samples are not what the model takes"
    INTERFACE = "two models take or return different tensors"
    TIE = "an output and an input cannot share their bytes"
    MEMORY = "a memory is too small, or not in the order of prices"
    FORM = "a model cannot run in steps, rows, or parts, or in a framework around TFLM"
    NO_KERNEL = "TFLM has no kernel for an operator as it is"
    OTHER_KERNELS = "a plan computes wrongly with the kernels of the target"
    NOT_RUN = "no interpreter runs the model"
    DECISION = "a decision does not fit the model"
    OVERLAP = "two items share bytes while both are needed"
    PLACE = "an item lies where it may not, or is alive at no time"
    COUNT = "something is given for another number of items"
    BOUND = "a lower bound is higher than its proof"


class MemoptError(Exception):
    """Base of every error that the tool raises on purpose. ``kind``: what is wrong, where the class leaves it open."""

    def __init__(self, message: str = "", kind: ErrorKind | None = None) -> None:
        super().__init__(message)
        self.kind = kind


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


def imported(module: str, lacking: str) -> Any:
    """Return a module of an optional package. Raises UsageError, with what to say, where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(lacking, ErrorKind.NOT_INSTALLED) from error


def printable(text: str) -> str:
    """Text of a file as a terminal and XML take it: on one line, control characters by number, no byte but UTF-8."""
    shown = "".join(each if each.isprintable() or _is_surrogate(each) else _numbered(each) for each in text)
    return shown.encode("utf-8", "replace").decode("utf-8")


def _is_surrogate(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


def _numbered(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
