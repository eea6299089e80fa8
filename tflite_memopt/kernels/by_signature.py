"""Facts of operators that searches ask for many thousand times, by the signature of the operator."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

Fact = TypeVar("Fact")
_MOST = 1 << 14


class BySignature(dict[Hashable, Fact]):
    """Facts by signature: all that they depend on. It is emptied when it is full, so that it does not grow."""

    def __setitem__(self, signature: Hashable, fact: Fact) -> None:
        if len(self) >= _MOST:
            self.clear()
        super().__setitem__(signature, fact)
