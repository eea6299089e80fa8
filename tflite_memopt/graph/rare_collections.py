"""A search makes very many objects that live long: Python need not look so often for those that are dead."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 50_000
"""New objects between two looks for dead ones that refer to each other; Python's own number is 700."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """In here dead objects that refer to each other are looked for less often; a caller who never looks is left so."""
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(max(_OBJECTS, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
