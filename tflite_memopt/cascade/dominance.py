"""Which selections of the first steps can be left out: another one costs no more, whatever is added to both.

Constants are sets. What is added may share any of them, so that a constant that only one of the two has counts in full.
Dominance in this sense is transitive: who is beaten at all is beaten by one that stays, and all are compared at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .cut_table import Flags, Integers
from .selection import TAIL_OF_CONSTANT, TEMPORARIES_OF_CONSTANT, Selection

_BLOCK = 256
"""Selections that are compared at once with all that may beat them."""
_PAIRS = 1 << 16
"""Pairs of which the constants are compared at once."""
_FAR = 1 << 50
"""More than any sum."""
_ONES: Integers = np.asarray([byte.bit_count() for byte in range(256)], np.int64)
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Floors:
    """Sums that make no difference: any two up to a floor are as good as each other, whatever is added to both."""

    temporaries: int = 0
    operators: int = 0
    work: int = 0


def undominated(labels: Sequence[Selection], floors: Floors = Floors()) -> list[Selection]:
    """Without those that another one equals or beats in everything, whatever is added to both; smallest bound first."""
    table = _Table(labels, floors)
    kept: Integers = np.empty(0, np.intp)
    for first in range(0, len(labels), _BLOCK):
        block = np.arange(first, min(first + _BLOCK, len(labels)))
        rivals = np.concatenate([kept, block])
        kept = np.concatenate([kept, block[~table.are_beaten(block, rivals)]])
    return [table.ordered[at] for at in kept]


class _Table:
    """Selections in an order in which none is beaten by a later one, a row each."""

    def __init__(self, labels: Sequence[Selection], floors: Floors) -> None:
        priced = sorted(((_price(label, floors), label) for label in labels), key=lambda pair: pair[0])
        self.ordered = [label for _, label in priced]
        columns: Integers = np.asarray([price[:5] for price, _ in priced], np.int64).reshape(-1, 5).T
        # What is the same for all says nothing. The bound is sorted, and so beats by its place alone.
        self._columns = [column for column in columns[2:] if column.size and column.min() < column.max()]
        self._tail = self._of(lambda label: label.tail)
        self._temporaries = self._of(lambda label: label.temporaries)
        self._whole_tail = self._of(lambda label: label.whole_tail)
        self._whole_temporaries = self._of(lambda label: label.whole_temporaries)
        # With all constants up to the floor: nothing takes less.
        are_free = self._whole_temporaries <= floors.temporaries
        self._paid = np.where(are_free, -_FAR, self._temporaries)
        self._whole_temporaries[are_free] = -_FAR
        width = max((label.constants.bit_length() for label in labels), default=0) // 8 + 1
        raw = b"".join(label.constants.to_bytes(width, "little") for label in self.ordered)
        self._constants: Bytes = np.frombuffer(raw, np.uint8).reshape(-1, width)

    def _of(self, figure: Callable[[Selection], int]) -> Integers:
        return np.asarray([figure(label) for label in self.ordered], np.int64)

    def are_beaten(self, block: Integers, rivals: Integers) -> Flags:
        """For each of a block whether one of its rivals, by their places, that comes before it beats it."""
        may = rivals < block[:, None]
        may &= self._paid[rivals] <= self._temporaries[block, None]
        for column in (self._tail, *self._columns):
            may &= column[rivals] <= column[block, None]
        # Whatever the constants that both have.
        surely = may & (self._whole_tail[rivals] <= self._tail[block, None])
        surely &= self._whole_temporaries[rivals] <= self._temporaries[block, None]
        beaten: Flags = np.logical_or.reduce(surely, axis=1)
        may[beaten] = False
        rows, columns = np.nonzero(may)
        for first in range(0, len(rows), _PAIRS):
            own, other = rows[first : first + _PAIRS], columns[first : first + _PAIRS]
            beaten[own[self._are_cheaper(rivals[other], block[own])]] = True
        return beaten

    def _are_cheaper(self, ones: Integers, others: Integers) -> Flags:
        """Whether one takes no more tail and temporaries, even if all that is added shares constants with the other."""
        alone = _ONES[self._constants[ones] & ~self._constants[others]].sum(axis=1)
        temporaries = self._paid[ones] + TEMPORARIES_OF_CONSTANT * alone
        tail = self._tail[ones] + TAIL_OF_CONSTANT * alone
        are_cheaper: Flags = (tail <= self._tail[others]) & (temporaries <= self._temporaries[others])
        return are_cheaper


def _price(label: Selection, floors: Floors) -> tuple[int, ...]:
    """What is compared, and then what is cheaper anyway."""
    operators, work = max(label.operators, floors.operators), max(label.work, floors.work)
    temporaries = max(label.whole_temporaries, floors.temporaries)
    return label.bound, label.whole_tail, label.macs, operators, work, temporaries, label.operators, label.work
