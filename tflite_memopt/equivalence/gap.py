"""How far the outputs of two models are apart, over all samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .tolerance import Array, abs_diff


class OutputKey(NamedTuple):
    """A result's sample and its position among the outputs."""

    sample: int
    output: int


def output_key(name: str) -> OutputKey:
    """The key of an array called ``sSAMPLE_oOUTPUT``."""
    sample, output = name[1:].split("_o")
    return OutputKey(int(sample), int(output))


@dataclass(frozen=True)
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

    @property
    def differing_share(self) -> float:
        """Share of all output values that differ."""
        return self.differing / self.values if self.values else 0.0

    @property
    def agreeing_argmax_share(self) -> float | None:
        """Share of rows of scores whose largest is in the same place; None without such outputs."""
        return self.agreeing_rows / self.rows if self.rows else None


def gap_between(before: Mapping[str, Array], after: Mapping[str, Array], steps: Mapping[int, float]) -> Gap:
    """The gap over all arrays of ``before``; one that ``after`` lacks is infinitely far off.

    ``steps``: by position, the distance of two neighbouring values of outputs that are integers written as floats.
    """
    return _union(_gap(a, after.get(name), steps.get(output_key(name).output)) for name, a in before.items())


def _gap(a: Array, b: Array | None, step: float | None) -> Gap:
    if b is None or a.shape != b.shape:
        return Gap(float("inf"), values=a.size, differing=a.size)
    gaps = abs_diff(a, b)
    largest = float(gaps.max(initial=0.0))
    found = Gap(largest, values=a.size, differing=int(np.count_nonzero(gaps)))
    if a.ndim == 2 and a.shape[1] > 1:
        agreeing = int(np.count_nonzero(a.argmax(axis=1) == b.argmax(axis=1)))
        found = replace(found, rows=a.shape[0], agreeing_rows=agreeing)
    if a.dtype.kind not in "fc":
        return replace(found, max_lsb_diff=largest)
    if step is not None:
        return replace(found, max_lsb_diff=float(np.round(largest / step)))
    magnitude = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
    return replace(found, max_relative_diff=_ratio(largest, magnitude))


def _ratio(part: float, whole: float) -> float:
    if part == 0.0:
        return 0.0
    return part / whole if whole else float("inf")


def _union(gaps: Iterable[Gap]) -> Gap:
    whole = Gap()
    for each in gaps:
        whole = Gap(
            max(whole.max_abs_diff, each.max_abs_diff),
            _larger(whole.max_relative_diff, each.max_relative_diff),
            _larger(whole.max_lsb_diff, each.max_lsb_diff),
            whole.values + each.values,
            whole.differing + each.differing,
            whole.rows + each.rows,
            whole.agreeing_rows + each.agreeing_rows,
        )
    return whole


def _larger(a: float | None, b: float | None) -> float | None:
    return max((each for each in (a, b) if each is not None), default=None)
