"""Stripes with one treatment of the rows that two of them need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from tflite_memopt.cascade import space
from tflite_memopt.cascade.stripes import Halo


@contextmanager
def halo_alone(halo: Halo) -> Iterator[None]:
    """Searches in this process write no other stripes and loops."""
    unrolled = tuple(mode for mode in space.UNROLLED if mode[0] == halo)
    loops = {halo: space.LOOPS_BY_HALO[halo]}
    with patch.object(space, "UNROLLED", unrolled), patch.object(space, "LOOPS_BY_HALO", loops):
        yield
