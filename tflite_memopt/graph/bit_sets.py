"""Sets of small numbers as one ``int`` with a bit for each: bit ``v`` is number ``v``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_


def bits(chosen: int) -> Iterator[int]:
    """The numbers of a set, smallest first."""
    while chosen:
        lowest = chosen & -chosen
        yield lowest.bit_length() - 1
        chosen ^= lowest


def set_of(numbers: Iterable[int]) -> int:
    """The set of some numbers."""
    return union(1 << v for v in numbers)


def union(sets: Iterable[int]) -> int:
    """The numbers of any of the sets."""
    return reduce(or_, sets, 0)
