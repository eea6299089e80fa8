"""The elements of a proof that are known functions of stored integers, to be found by their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Marks = npt.NDArray[np.uint64]
Table = npt.NDArray[Any]


class Images:
    """``tables``: what becomes of each integer, the least first; elements have the numbers of tables."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._parts: list[tuple[Marks, Marks, npt.NDArray[np.int64]]] = []
        """Marks in order, with the integers and the numbers of tables; each part is larger than all behind it."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._parts)

    def add(self, marks: Marks, source: Marks, table: Table) -> None:
        """Note that the elements with these marks have what becomes of the integers of ``source`` by a table."""
        number = self._numbers.setdefault((table.dtype.str, table.tobytes()), len(self.tables))
        if number == len(self.tables):
            self.tables.append(table)
        parts = [(marks.reshape(-1), source.reshape(-1), np.full(marks.size, number))]
        while self._parts and len(self._parts[-1][0]) <= sum(len(each[0]) for each in parts):
            parts.append(self._parts.pop())
        marked, of, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
        ordered, first = np.unique(marked, return_index=True)
        if ordered.size:
            self._parts.append((ordered, of[first], numbers[first]))

    def find(self, marks: Marks) -> tuple[Marks, npt.NDArray[np.int64]]:
        """Return the integers that elements are functions of, and the numbers of their tables; -1: none is known."""
        source, numbers = np.zeros(marks.size, np.uint64), np.full(marks.size, -1)
        for marked, of, own in self._parts:
            at = np.minimum(np.searchsorted(marked, marks), marked.size - 1)
            is_here = marked[at] == marks
            source, numbers = np.where(is_here, of[at], source), np.where(is_here, own[at], numbers)
        return source, numbers
