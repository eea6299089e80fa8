"""What the worker asks of an interpreter adapter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

REFERENCE, OPTIMISED_KERNELS = "reference kernels", "optimised kernels"
LARGEST_ARENA = 0


@dataclass(frozen=True)
class RunJob:
    """One model and the samples to run in sequence on one interpreter, so that state carries over.

    ``tensors``: positions of tensors of the entry graph whose values are wanted after each sample, besides the
    outputs; LiteRT and TensorFlow then preserve all tensors; TFLM shows them in a module (``module.py``), those of all
    subgraphs, and nowhere else. ``turns``: how often LiteRT and TensorFlow run each sample, from the second time on
    with the outputs as inputs; outputs are the last ones, and each of ``tensors`` has its values of all turns, one
    after the other along the first axis. ``kernels``: which of LiteRT's.
    For TFLM: ``arena_bytes``, and ``fill``, the byte that its arena holds before, from 1 to 255 (None: whatever is
    there).
    For a runner of the user's: ``arena_bytes``, of which ``LARGEST_ARENA`` stands for all that it has, and
    ``measure``, whether the smallest arena is looked for.
    """

    model: bytes
    samples: list[list[npt.NDArray[Any]]]
    arena_bytes: int
    tensors: tuple[int, ...] = ()
    kernels: str = REFERENCE
    fill: int | None = None
    measure: bool = False
    turns: int = 1


@dataclass(frozen=True)
class Outcome:
    """``arrays`` are named ``sSAMPLE_oOUTPUT`` and ``sSAMPLE_tTENSOR``; ``facts`` are what the runtime says."""

    arrays: dict[str, npt.NDArray[Any]]
    facts: dict[str, int] = field(default_factory=dict)


Adapter = Callable[[RunJob], Outcome]
"""Raises ImportError when the runtime is missing, RuntimeError or ValueError when it refuses the model."""
