"""The compiled search against the plain one and brute force. Skipped where numba is missing."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from tflite_memopt.plan.exact.compiled_tree import CompiledTree
from tflite_memopt.plan.exact.group import Group, Ints, build, groups
from tflite_memopt.plan.exact.plain_tree import PlainTree, TreeEnd
from tflite_memopt.plan.problem import Item

PLENTY = 1_000_000


@st.composite
def models(draw: st.DrawFn) -> Group:
    """Up to seven free items of any size and alignment, and up to two fixed ones that keep out of each other."""
    scale = draw(st.sampled_from((1, 4, 16)))
    items: list[Item] = []
    for _ in range(draw(st.integers(1, 7))):
        start = draw(st.integers(0, 5))
        alignment = draw(st.sampled_from((1, 4, 16)))
        items.append(Item(draw(st.integers(1, 12)) * scale, start, start + draw(st.integers(1, 4)), alignment))
    for place in draw(st.lists(st.integers(0, 2), max_size=2, unique=True)):
        items.append(Item(draw(st.integers(1, 16)), draw(st.integers(0, 3)), 6, 16, place * 16))
    return build([items[i] for i in groups(items)[-1]])


def _smallest(search: PlainTree | CompiledTree, model: Group, rank: Ints) -> int:
    """The first capacity from the lower bound on that is not proved to be too small."""
    capacity = model.lower_bound
    while (outcome := search.run(capacity, rank, PLENTY)).end is not TreeEnd.FOUND:
        assert outcome.end is TreeEnd.NONE
        capacity += 1
    assert outcome.offsets is not None
    _assert_valid(model, outcome.offsets, capacity)
    return capacity


def _assert_valid(model: Group, offsets: Ints, capacity: int) -> None:
    assert (offsets >= 0).all()
    assert (offsets % model.alignment == 0).all()
    assert (offsets + model.size <= capacity).all()
    assert (offsets[model.fixed >= 0] == model.fixed[model.fixed >= 0]).all()
    for item, others in enumerate(model.meets):
        above = offsets[others] >= offsets[item] + model.size[item]
        below = offsets[others] + model.size[others] <= offsets[item]
        assert (above | below).all()


@given(model=models(), data=st.data())
@settings(max_examples=300, deadline=None)
def test_proves_the_same_capacity_as_the_plain_search(model: Group, data: st.DataObject) -> None:
    rank = np.array(data.draw(st.permutations(range(len(model.size)))), dtype=np.int64)
    deadline = time.perf_counter() + 60
    compiled, plain = CompiledTree(model, deadline), PlainTree(model, deadline)
    assert _smallest(compiled, model, rank) == _smallest(plain, model, rank)
