"""Random integers that are the same on every machine and with every version of numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
_WORD_BITS = 32


class Stream:
    """One stream of random integers for each key.

    numpy keeps the raw words of PCG64 and the mixing of seeds as they are for good, but not what its distributions make
    of them (numpy NEP 19); so only raw words are taken, and integers made of them here.
    """

    def __init__(self, *key: int) -> None:
        self._words = np.random.PCG64(np.random.SeedSequence(list(key)))

    def integers(self, low: int, high: int, shape: Sequence[int] = ()) -> Integers:
        """Uniform integers, both ends included; at most 2**32 of them to choose from."""
        count = int(np.prod(shape, dtype=np.int64))
        words = np.asarray(self._words.random_raw(count), np.uint64) >> np.uint64(64 - _WORD_BITS)
        scaled = (words * np.uint64(high - low + 1)) >> np.uint64(_WORD_BITS)
        found: npt.NDArray[Any] = scaled.astype(np.int64) + low
        return found.reshape(tuple(shape))

    def integer(self, low: int, high: int) -> int:
        """One of them."""
        return int(self.integers(low, high))
