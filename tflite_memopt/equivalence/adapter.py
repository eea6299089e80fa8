"""What the worker asks of an interpreter adapter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True)
class Job:
    """One model and the samples to run in sequence on one interpreter, so that state carries over.

    ``arena_bytes`` is for TFLM. ``trace`` asks for every tensor of the entry graph after the last sample,
    named ``tINDEX``, in place of the outputs.
    """

    model: bytes
    samples: list[list[npt.NDArray[Any]]]
    arena_bytes: int
    trace: bool = False


@dataclass(frozen=True)
class Outcome:
    """``arrays`` are named ``sSAMPLE_oOUTPUT`` (or ``tINDEX``); ``facts`` are what the runtime says of itself."""

    arrays: dict[str, npt.NDArray[Any]]
    facts: dict[str, int] = field(default_factory=dict)


Adapter = Callable[[Job], Outcome]
"""Raises ImportError when the runtime is missing, RuntimeError or ValueError when it refuses the model."""
