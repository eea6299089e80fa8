"""What a kernel asks of TFLM's arena: the types that the tables of this folder use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...ir.model import Operator, Tensor

Word = Literal[32, 64]
"""Pointer width of the target in bits.

32 is ARM (AAPCS with 4-byte enums, which is also an upper bound for Cortex-M's short ones), as firmware is built at
tflite-micro commit 90b983c2b3f1. 64 is the tflite-micro wheel 0.dev20261023 for x86-64, built with tensor compression.
"""


class Size(NamedTuple):
    """sizeof one C++ structure on the two targets, in bytes."""

    w32: int
    w64: int

    def on(self, word: Word) -> int:
        """Bytes on a target with this pointer width."""
        return self.w32 if word == 32 else self.w64


NOTHING = Size(0, 0)


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


RequestRule = Callable[[Operator, Word], Requests]
"""One row of the table: an operator and a target give the requests."""
