"""A job for a runtime, and its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Sample = list[Array]
"""One array per graph input, in the graph's order, each of the input's shape and type."""
Values = Mapping[int, list[Array]]
"""By position of an output or a tensor, its value for each sample."""
REFERENCE, OPTIMIZED_KERNELS = "reference kernels", "optimized kernels"
LARGEST_ARENA = 0
TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True)
class RunJob:
    """One model and the samples to run in sequence on one interpreter, so that state carries over.

    ``tensors``: positions of tensors whose values are wanted after each sample, besides the outputs. LiteRT shows those
    of the entry graph and preserves them all; TFLM shows none. ``kernels``: which of LiteRT's.
    For TFLM: ``arena_bytes``, and ``fill``, the byte that its arena holds before, from 1 to 255 (None: whatever is
    there). For a runner of the user's, ``LARGEST_ARENA`` stands for all that it has. ``measure``: whether a runner
    looks for the smallest arena.
    ``carried``: (output, input) pairs by position. A sample may be without all such inputs, each of which then is what
    the output of the sample before was: TFLM has it there, as the model's plan says, elsewhere it is copied.
    ``wanted``: the samples whose values are given back; None: all.
    """

    model: bytes
    samples: list[Sample]
    arena_bytes: int
    tensors: tuple[int, ...] = ()
    kernels: str = REFERENCE
    fill: int | None = None
    measure: bool = False
    carried: tuple[tuple[int, int], ...] = ()
    wanted: tuple[int, ...] | None = None

    def placed(self, sample: Sample, inputs: int) -> dict[int, Array]:
        """Return the arrays of a sample by the position of their input, for a model with so many ``inputs``.

        Raises ValueError where the sample has neither all inputs nor all but the carried ones.
        """
        carried = {source for _, source in self.carried}
        places = range(inputs) if len(sample) == inputs else [at for at in range(inputs) if at not in carried]
        return dict(zip(places, sample, strict=True))

    def gives_back(self, sample: int) -> bool:
        """Return whether the values of a sample, by number, are requested."""
        return self.wanted is None or sample in self.wanted


@dataclass(frozen=True)
class ModelRun:
    """The results of one model on a runtime: ``outputs`` by position, and the requested ``tensors``.

    A tensor that has no value in some sample is missing. ``facts`` are TFLM's, in bytes: ``head``, ``tail``, ``total``,
    ``smallest_arena`` where it was measured; a runner may count ``instructions`` and name its ``pointer_bits``.
    ``error`` is set when the model was refused or crashed the runtime; ``missing`` when the runtime is not installed.
    ``kernels`` and ``commit`` are the words of a runner.
    """

    outputs: Values = field(default_factory=dict)
    tensors: Values = field(default_factory=dict)
    facts: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    missing: str | None = None
    kernels: str = ""
    commit: str = ""

    @property
    def ran(self) -> bool:
        """Return whether there are results."""
        return self.error is None and self.missing is None

    @property
    def reason(self) -> str:
        """Why there are none."""
        return self.missing or self.error or "no reason given"

    @property
    def words(self) -> str:
        """The kernel library and its version."""
        return f"{self.kernels} at {self.commit}" if self.commit else self.kernels

    @property
    def arrays(self) -> dict[str, Array]:
        """The outputs by sample and position, named as in ``s0_o1``: for those who compare runs as a whole."""
        found = [(sample, at, array) for at, values in self.outputs.items() for sample, array in enumerate(values)]
        return {f"s{sample}_o{at}": array for sample, at, array in sorted(found, key=lambda each: each[:2])}


Adapter = Callable[[RunJob], ModelRun]
"""Raises ImportError when the runtime is missing, RuntimeError or ValueError when it refuses the model."""


def by_position(rows: Iterable[Mapping[int, Array]]) -> dict[int, list[Array]]:
    """Return the values of each position in all rows, one row a sample. A position that a row lacks is left out."""
    samples = list(rows)
    first = samples[0] if samples else {}
    return {at: [row[at] for row in samples] for at in first if all(at in row for row in samples)}
