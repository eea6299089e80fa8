"""Many ways to cut an image's rows into stripes, laid out flat: numpy works on all of them at once.

    way 0: two stripes     way 1: three stripes        one column for each stripe
    | 0..4 | 4..8 |        | 0..3 | 3..6 | 6..8 |

All arrays of this folder with "a column for each stripe" are in this layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..graph.alignment import ARENA_ALIGNMENT

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Columns = TypeVar("Columns", Integers, Flags)
Ends = tuple[int, ...]
"""The last row of each stripe, half-open, in order; the last of them is the height."""

_FAR = 1 << 42
"""More than any value that is compared."""


def up(sizes: Integers) -> Integers:
    """Bytes rounded up to TFLM's alignment."""
    return (sizes + (ARENA_ALIGNMENT - 1)) // ARENA_ALIGNMENT * ARENA_ALIGNMENT


@dataclass(frozen=True)
class CutTable:
    """``ways[w]`` are the ends of the stripes of way w."""

    ways: tuple[Ends, ...]

    @cached_property
    def end(self) -> Integers:
        """The last row of each stripe, half-open."""
        return np.concatenate([np.asarray(ends, np.int64) for ends in self.ways])

    @cached_property
    def start(self) -> Integers:
        """The first row of each stripe."""
        return self.previous(self.end, 0)

    @cached_property
    def first(self) -> npt.NDArray[np.intp]:
        """The column of the first stripe of each way."""
        lengths = [len(ends) for ends in self.ways]
        return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp)

    @cached_property
    def last(self) -> npt.NDArray[np.intp]:
        """The column of the last stripe of each way."""
        return np.concatenate([self.first[1:], [len(self.end)]]).astype(np.intp) - 1

    @cached_property
    def way(self) -> npt.NDArray[np.intp]:
        """The way that each column belongs to."""
        return np.repeat(np.arange(len(self.ways)), [len(ends) for ends in self.ways])

    def previous(self, values: Columns, fill: int) -> Columns:
        """For each stripe the value of the one before it, ``fill`` for the first of a way."""
        moved = np.empty_like(values)
        moved[1:] = values[:-1]
        moved[self.first] = fill
        return moved

    def following(self, values: Columns, fill: int) -> Columns:
        """For each stripe the value of the one after it, ``fill`` for the last of a way."""
        moved = np.empty_like(values)
        moved[:-1] = values[1:]
        moved[self.last] = fill
        return moved

    def sums(self, values: Integers | Flags) -> Integers:
        """The sum over the stripes of each way."""
        found: Integers = np.add.reduceat(values.astype(np.int64), self.first)
        return found

    def largest(self, values: Integers) -> Integers:
        """The largest value of each way."""
        found: Integers = np.maximum.reduceat(values, self.first)
        return found

    def least_from(self, values: Integers) -> Integers:
        """For each stripe the smallest value of it and those after it."""
        apart = self.way * _FAR  # a later way has larger values, so that it decides nothing in an earlier one
        found: Integers = np.minimum.accumulate((values + apart)[::-1])[::-1] - apart
        return found

    def largest_until(self, values: Integers) -> Integers:
        """For each stripe the largest value of it and those before it."""
        apart = self.way * _FAR
        found: Integers = np.maximum.accumulate(values + apart) - apart
        return found

    def sums_before(self, values: Integers) -> Integers:
        """For each stripe the sum over the stripes before it."""
        total = np.cumsum(values) - values
        return total - total[self.first][self.way]


def even_ends(height: int, count: int, multiple: int = 1) -> Ends:
    """``count`` stripes or fewer of a tensor's rows, as even as multiples of so many rows allow."""
    units = -(-height // multiple)
    count = min(count, units)
    return tuple(min(height, multiple * (units * (k + 1) // count)) for k in range(count))


def ways_to_cut(height: int, counts: Sequence[int], aligned_rows: int) -> CutTable | None:
    """Even stripes of these counts, at any row and at multiples of ``aligned_rows``; None if there are no two rows."""
    found: dict[Ends, None] = {}
    for count in counts:
        for multiple in dict.fromkeys((1, aligned_rows)):
            ends = even_ends(height, count, multiple)
            if len(ends) == count > 1:
                found[ends] = None
    return CutTable(tuple(found)) if found else None
