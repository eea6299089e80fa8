"""Runs in this process with one mechanism in place of another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

from tflite_memopt.search.cascade import space
from tflite_memopt.search.cascade.stripes import Halo
from tflite_memopt.solvers.schedule import methods
from tflite_memopt.solvers.schedule.methods import DEFAULT, METHODS


def ordered_by(method: str) -> AbstractContextManager[object]:
    """Operators are ordered by another method of the table."""
    return patch.object(methods, "METHODS", {**METHODS, DEFAULT: METHODS[method]})


@contextmanager
def halo_alone(halo: Halo) -> Iterator[None]:
    """The rows that two stripes need are treated in one way alone, in stripes and in loops."""
    unrolled = tuple(mode for mode in space.UNROLLED if mode[0] == halo)
    loops = {halo: space.LOOPS_BY_HALO[halo]}
    with patch.object(space, "UNROLLED", unrolled), patch.object(space, "LOOPS_BY_HALO", loops):
        yield
