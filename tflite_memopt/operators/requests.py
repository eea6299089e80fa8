"""What a kernel asks of TFLM's arena: layouts of structures by target, and the rule that is a row of the table.

Sizes are bytes, of tflite-micro commit 90b983c2b3f1 (2026-08-20), reference kernels, without tensor compression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..errors import ErrorKind, ModelFormatError
from ..model.ir.model import DType, Operator, Tensor

Word = Literal[32, 64]
"""Pointer width of the target in bits."""


@dataclass(frozen=True)
class Abi:
    """The layout of C++ structures by the firmware's compiler, where TFLM's sizes depend on it.

    ``word``: pointer width in bits. ``short_enums``: an enum takes as few bytes as its values need, not 4, which is
    GCC's and Arm Compiler's default for bare-metal Arm (AAPCS). ``in_wheel``: built like the tflite-micro wheel
    0.dev20261023, which has tensor compression, so that some structures are larger. ``records``: it has the recording
    allocator (micro/recording_micro_allocator.h), as the wheel's Python interpreter does. ``is_static``: compiled with
    TF_LITE_STATIC_MEMORY, without which nodes and tensors are larger.
    """

    name: str
    word: Word
    short_enums: bool = False
    in_wheel: bool = False
    records: bool = False
    is_static: bool = True


ILP32 = Abi("32 bits, enums of 4 bytes", 32)
ILP32_SHORT_ENUMS = Abi("32 bits, short enums", 32, short_enums=True)
LP64 = Abi("64 bits", 64)
WHEEL = Abi("64 bits, as the tflite-micro wheel in Python", 64, in_wheel=True, records=True)
WHEEL_IN_CPP = Abi("64 bits, as the tflite-micro wheel in C++", 64, in_wheel=True)


class Size(NamedTuple):
    """sizeof one C++ structure in bytes: on 32 bits with enums of 4 bytes, and in the 64-bit wheel if it differs.

    ``short`` and ``lp64`` are for a build with short enums, and for a plain 64-bit one, where they differ from these.
    """

    w32: int
    w64: int | None = None
    short: int | None = None
    lp64: int | None = None

    def on(self, abi: Abi) -> int:
        """Return the bytes on a target with this layout."""
        if abi.word == 32:
            return self.short if abi.short_enums and self.short is not None else self.w32
        wide = self.w32 if self.w64 is None else self.w64
        return self.lp64 if not abi.in_wheel and self.lp64 is not None else wide


POINTER = Size(4, 8)
INT = 4


@dataclass(frozen=True)
class Requests:
    """Everything that one operator takes from the arena, in bytes, in the order of TFLM's calls.

    ``params``: the builtin parameter structure that the flatbuffer parser allocates; ``params_alignment`` is
    its C++ alignment, as the parser requests it, not a whole word.
    ``init``, ``prepare``: AllocatePersistentBuffer calls in Init and in Prepare (each aligned to 16).
    ``scratch``: RequestScratchBufferInArena calls; alive in the head during the operator's step.
    ``temporaries``: tensors whose TfLiteTensor Prepare holds at the same time in the temporary area.
    ``known``: False when no table row exists for the operator, so that the figures are a guess.
    """

    params: int = 0
    init: tuple[int, ...] = ()
    prepare: tuple[int, ...] = ()
    scratch: tuple[int, ...] = ()
    temporaries: tuple[Tensor, ...] = ()
    known: bool = True
    params_alignment: int = 4


RequestRule = Callable[[Operator, Abi], Requests]
"""An operator and a target's layout give the requests."""
Bytes = Callable[[Operator, Abi], tuple[int, ...]]
"""The sizes of some buffers of an operator."""


class Slot(NamedTuple):
    """One input or output of an operator, by position."""

    side: Literal["input", "output"]
    position: int


IN0, IN1, IN2, IN3, IN4, IN5 = (Slot("input", position) for position in range(6))
OUT0, OUT1 = (Slot("output", position) for position in range(2))
UNARY = (IN0, OUT0)
BINARY = (IN0, IN1, OUT0)
TERNARY = (IN0, IN1, IN2, OUT0)


def inputs(count: int, start: int = 0) -> tuple[Slot, ...]:
    """Return the input slots ``start`` to ``count - 1``."""
    return tuple(Slot("input", position) for position in range(start, count))


def held(operator: Operator, slots: Iterable[Slot]) -> tuple[Tensor, ...]:
    """Return the tensors at these slots, in order; a slot that is beyond the end or left out holds none.

    Source: micro_context.cc, ``AllocateTempInputTensor``, which allocates nothing for those.
    """
    present = (_at(operator, slot) for slot in slots)
    return tuple(tensor for tensor in present if tensor is not None)


def needed(operator: Operator, slot: Slot) -> Tensor:
    """Return the tensor at a slot that the kernel cannot do without. Raises ModelFormatError when it is missing."""
    tensor = _at(operator, slot)
    if tensor is None:
        what = f"{operator.opcode.label} lacks its {slot.side} {slot.position}"
        raise ModelFormatError(f"{what}; convert the model again", ErrorKind.OPERAND)
    return tensor


def _at(operator: Operator, slot: Slot) -> Tensor | None:
    tensors = operator.inputs if slot.side == "input" else operator.outputs
    return tensors[slot.position] if slot.position < len(tensors) else None


def no_bytes(_: Operator, __: Abi) -> tuple[int, ...]:
    """Ask for nothing."""
    return ()


def shape_bytes(tensor: Tensor) -> int:
    """sizeof a TfLiteIntArray that holds the tensor's shape: a count and one int per dimension."""
    return INT * (1 + len(tensor.shape))


def copied_shape(operator: Operator, _: Abi) -> tuple[int, ...]:
    """Ask for the output's dimensions, which Prepare copies (kernel_util.cc, ``CreateWritableTensorDimsWithCopy``)."""
    return (shape_bytes(needed(operator, OUT0)),)


def if_int8(slot: Slot, size: Size) -> Bytes:
    """Ask for one structure where the tensor at a slot is int8."""
    return lambda operator, abi: (size.on(abi),) if needed(operator, slot).dtype is DType.INT8 else ()


@dataclass(frozen=True)
class Asks:
    """The requests of a reference kernel. A size that is a number is the same in all layouts.

    ``params``: the parser's structure, aligned to ``alignment``, or else as its size says. ``op_data``: allocated in
    Init. ``holds``: the AllocateTemp calls of Prepare, in order. ``prepare``, ``scratch``, ``in_init``: buffers that
    depend on the operator; the last are allocated in Init as well.
    """

    params: Size | int = 0
    op_data: Size | int = 0
    holds: tuple[Slot, ...] | Callable[[Operator], tuple[Slot, ...]] = ()
    prepare: Bytes = no_bytes
    scratch: Bytes = no_bytes
    alignment: Size | None = None
    in_init: Bytes = no_bytes

    def __call__(self, operator: Operator, abi: Abi) -> Requests:
        """Return the requests of one operator. Raises ModelFormatError where it lacks a tensor."""
        params, op_data = (each if isinstance(each, int) else each.on(abi) for each in (self.params, self.op_data))
        of_fields = 1 if params % INT else INT  # nothing but bools and short enums, or ints as well
        return Requests(
            params,
            ((op_data,) if op_data else ()) + self.in_init(operator, abi),
            self.prepare(operator, abi),
            self.scratch(operator, abi),
            held(operator, self.holds(operator) if callable(self.holds) else self.holds),
            params_alignment=of_fields if self.alignment is None else self.alignment.on(abi),
        )
