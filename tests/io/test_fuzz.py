"""Some of the damaged models of ``scripts/fuzz``: none gets past an error of one line."""

from __future__ import annotations

from functools import cache

import pytest

from scripts.fuzzing.__main__ import bases, ending
from scripts.fuzzing.cases import damaged

models = cache(bases)
_SEED = 1


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_damaged_models_are_optimized_or_refused(first: int) -> None:
    ends = {number: ending(damaged(models(), number, _SEED)) for number in range(first, first + 50)}
    assert {number: end for number, end in ends.items() if end.startswith("FAILED")} == {}
    assert len(set(ends.values())) > 1


def test_a_case_is_the_same_every_time() -> None:
    assert damaged(models(), 7, 0) == damaged(models(), 7, 0) != damaged(models(), 8, 0)
