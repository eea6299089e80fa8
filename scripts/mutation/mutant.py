"""A model with one thing wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """``kind`` is what was done, ``where`` to which tensor or operator; ``touched`` are the operators that see it.

    ``data`` are the bytes of the whole model. ``touched`` is empty where only a run of the whole model would tell.
    """

    kind: str
    where: str
    data: bytes
    touched: tuple[int, ...] = ()
