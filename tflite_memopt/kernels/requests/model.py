"""What a kernel asks of TFLM's arena: the types that the tables of this folder use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...ir.model import Operator, Tensor

Word = Literal[32, 64]
"""Pointer width of the target in bits."""


@dataclass(frozen=True)
class Abi:
    """How the firmware's compiler lays out C++ structures, as far as TFLM's sizes depend on it.

    ``word``: pointer width in bits. ``short_enums``: an enum takes as few bytes as its values need, not 4, which is
    GCC's and Arm Compiler's default for bare-metal Arm (AAPCS). ``in_wheel``: built like the tflite-micro wheel
    0.dev20261023, which records allocations and has tensor compression, so that some structures are larger.
    """

    name: str
    word: Word
    short_enums: bool = False
    in_wheel: bool = False


ILP32 = Abi("32 bits, enums of 4 bytes", 32)
ILP32_SHORT_ENUMS = Abi("32 bits, short enums", 32, short_enums=True)
LP64 = Abi("64 bits", 64)
WHEEL = Abi("64 bits, as the tflite-micro wheel", 64, in_wheel=True)


class Size(NamedTuple):
    """sizeof one C++ structure in bytes: on 32 bits with enums of 4 bytes, and in the 64-bit wheel.

    ``short`` and ``lp64`` are for a build with short enums, and for a plain 64-bit one, where they differ from these.
    """

    w32: int
    w64: int
    short: int | None = None
    lp64: int | None = None

    def on(self, abi: Abi) -> int:
        """Bytes on a target with this layout."""
        if abi.word == 32:
            return self.short if abi.short_enums and self.short is not None else self.w32
        return self.lp64 if not abi.in_wheel and self.lp64 is not None else self.w64


NOTHING = Size(0, 0)
_WORD_BYTES = 4


def alignment_of(size: int) -> int:
    """C++ alignment of a parameter structure of this many bytes: of ints, or of nothing but bools and short enums."""
    return 1 if size % _WORD_BYTES else _WORD_BYTES


@dataclass(frozen=True)
class Requests:
    """Everything that one operator takes from the arena, in bytes, in the order of TFLM's calls.

    ``params``: the builtin parameter structure that the flatbuffer parser allocates; ``params_alignment`` is
    its C++ alignment, which is what the parser asks for, not a whole word.
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
"""One row of the table: an operator and a target's layout give the requests."""
