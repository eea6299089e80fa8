"""Where views lie in the bytes of a tensor, or in a chain of them: their ends cut it into atoms.

    storage   |--------------------------|        a stripe's rows, some of them kept for the next one
    views     |--------|       |---------|        this stripe's
                    |----------------|            the next one's
    ends      |     |  |       |     |   |        ``memory/byte_ranges.py`` cuts at all of them

An operator saves bytes where an input dies only if that input is one atom: no end lies inside it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .cut_table import Flags, Integers

_FAR = 1 << 40
"""More bytes than any storage has."""


class ViewEnds:
    """``storage`` numbers the storage of each column; ``ends`` are (which columns, byte in the storage)."""

    def __init__(self, storage: Integers, ends: Iterable[tuple[Flags, Integers]]) -> None:
        self._base = storage.astype(np.int64) * _FAR
        self._sorted = np.sort(np.concatenate([(self._base + at)[chosen] for chosen, at in ends]))

    def are_inside(self, first: Integers | int, end: Integers | int) -> Flags:
        """Whether a view starts or ends inside bytes ``first`` to ``end``, half-open, of each column's storage."""
        before = np.searchsorted(self._sorted, self._base + first, "right")
        found: Flags = np.searchsorted(self._sorted, self._base + end, "left") > before
        return found
