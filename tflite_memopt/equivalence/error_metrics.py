"""How far the outputs of two models are apart, over all samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from .adapter import Array, Values
from .tolerance import abs_diff


@dataclass
class Gap:
    """Differences of outputs from the original's.

    ``max_abs_diff``: the largest, in the outputs' own units. ``max_relative_diff``: the largest of float outputs, as a
    share of the largest magnitude in the tensor. ``max_lsb_diff``: the largest of integer outputs, in steps. Both are
    None without such outputs. ``values`` were compared, ``differing`` of them differ. ``rows``: of outputs of rank 2
    with several columns, scores of classes as a rule; in ``agreeing_rows`` the largest is in the same column.
    """

    max_abs_diff: float = 0.0
    max_relative_diff: float | None = None
    max_lsb_diff: float | None = None
    values: int = 0
    differing: int = 0
    rows: int = 0
    agreeing_rows: int = 0

    def add(self, a: Array, b: Array | None, step: float | None) -> None:
        """Take in one output of one sample; ``step`` as for :func:`gap_between`."""
        self.values += a.size
        if b is None or a.shape != b.shape:
            self.differing, self.max_abs_diff = self.differing + a.size, math.inf
            return
        gaps = abs_diff(a, b)
        largest = float(gaps.max(initial=0.0))
        self.differing += int(np.count_nonzero(gaps))
        self.max_abs_diff = max(self.max_abs_diff, largest)
        if a.ndim == 2 and a.shape[1] > 1:
            self.rows += a.shape[0]
            self.agreeing_rows += int(np.count_nonzero(a.argmax(axis=1) == b.argmax(axis=1)))
        is_integer = a.dtype.kind not in "fc"
        if is_integer or step is not None:
            in_steps = largest if is_integer or step is None else float(np.round(largest / step))
            self.max_lsb_diff = max(self.max_lsb_diff or 0.0, in_steps)
            return
        magnitude = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
        share = 0.0 if not largest else largest / magnitude if magnitude else math.inf
        self.max_relative_diff = max(self.max_relative_diff or 0.0, share)

    @property
    def differing_share(self) -> float:
        """Share of all output values that differ."""
        return self.differing / self.values if self.values else 0.0

    @property
    def agreeing_argmax_share(self) -> float | None:
        """Share of rows of scores whose largest is in the same place; None without such outputs."""
        return self.agreeing_rows / self.rows if self.rows else None


def gap_between(before: Values, after: Values, steps: Mapping[int, float]) -> Gap:
    """The gap over all samples of all outputs of ``before``; one that ``after`` lacks is infinitely far off.

    ``steps``: by position, the distance of two neighboring values of outputs that are integers written as floats.
    """
    gap = Gap()
    for output, wanted in before.items():
        for a, b in zip_longest(wanted, after.get(output, ())[: len(wanted)]):
            gap.add(a, b, steps.get(output))
    return gap


def signal_to_noise(before: Values, after: Values) -> float:
    """In dB, of the output that is worst: how much the original's values vary, against how far the others are off.

    Infinite where nothing differs; minus infinity where what differs never varies.
    """
    return min((_decibels(wanted, after[output]) for output, wanted in before.items()), default=math.inf)


def _decibels(before: Sequence[Array], after: Sequence[Array]) -> float:
    if all(np.array_equal(*pair) for pair in zip(before, after, strict=True)):
        return math.inf  # as the sums below say; of integers most tensors are the same
    wanted, got = (np.concatenate([np.ravel(each).astype(np.float64) for each in side]) for side in (before, after))
    signal, noise = float(np.sum((wanted - wanted.mean()) ** 2)), float(np.sum((wanted - got) ** 2))
    if not noise:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf
