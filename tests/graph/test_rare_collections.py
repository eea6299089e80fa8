"""Collections of dead cycles: rarer inside, as they were afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tflite_memopt.graph.rare_collections import rare_collections


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("given", "inside"), [(700, 50_000), (1_000_000, 1_000_000), (0, 0)])
def test_they_are_rarer_and_come_back(given: int, inside: int) -> None:
    gc.set_threshold(given, 10, 10)
    with suppress(ValueError), rare_collections():
        assert gc.get_threshold() == (inside, 10, 10)
        raise ValueError
    assert gc.get_threshold() == (given, 10, 10)
