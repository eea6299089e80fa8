"""Belady's algorithm against every possible choice of what gives way, on traces small enough to try them all."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.papers.traffic import off_chip_traffic, peaks_of_random_orders, random_order
from tests.profiles import examples
from tests.schedule.problems import problems
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.methods import kahn
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step, memory_graph


def readers(reads: list[int], tensors: int) -> ScheduleProblem:
    """Operators that read one tensor of one byte each; all tensors are given."""
    return ScheduleProblem((1,) * tensors, tuple(Step((each,), ()) for each in reads), tuple(range(tensors)))


def fewest_fetches(reads: tuple[int, ...], tensors: int, capacity: int) -> int:
    """By trying every block that may give way, from the memory that Belady's start leaves."""
    trace = (*range(tensors), *reads)

    @cache
    def least(at: int, held: frozenset[int]) -> int:
        if at == len(trace):
            return 0
        block = trace[at]
        if block in held:
            return least(at + 1, held)
        cost = 0 if at < tensors else 1
        if len(held) < capacity:
            return cost + least(at + 1, held | {block})
        return cost + min(least(at + 1, held - {out} | {block}) for out in held)

    return least(0, frozenset())


@given(st.integers(1, 5), st.integers(1, 4), st.data())
@examples(200)
def test_no_choice_fetches_less(tensors: int, capacity: int, data: st.DataObject) -> None:
    reads = data.draw(st.lists(st.integers(0, tensors - 1), max_size=9))
    problem = readers(reads, tensors)
    found = off_chip_traffic(problem, range(len(reads)), capacity, block_bytes=1)
    assert found.fetched == fewest_fetches(tuple(reads), tensors, capacity)


def test_by_hand() -> None:
    """Two tensors of two bytes do not fit three: a byte of each is out while the other is in use."""
    steps = (Step((), (0,)), Step((), (1,)), Step((0,), ()), Step((1,), ()))
    problem = ScheduleProblem((2, 2), steps)
    found = off_chip_traffic(problem, range(4), 3, block_bytes=1)
    assert (found.fetched, found.put_out, found.total) == (2, 2, 4)
    assert off_chip_traffic(problem, range(4), 4, block_bytes=1).total == 0
    assert off_chip_traffic(problem, (0, 2, 1, 3), 2, block_bytes=1).total == 0
    copy = ScheduleProblem((2, 2), (Step((), (0,)), Step((0,), (1,)), Step((1,), ())))
    assert off_chip_traffic(copy, range(3), 4, block_bytes=1).total == 0
    assert off_chip_traffic(copy, range(3), 3, block_bytes=1).total > 0, "its input is held until its output is written"
    assert off_chip_traffic(problem, range(4), 1, block_bytes=2).total == 8


@pytest.mark.slow
@given(problems(), st.integers(1, 64))
@examples(60)
def test_what_fits_moves_nothing_and_more_memory_never_fetches_more(problem: ScheduleProblem, block: int) -> None:
    order = kahn(problem, SearchLimit()).order
    whole = sum(problem.sizes) + sum(step.scratch for step in problem.steps)
    # Reuse of dying inputs lowers a peak, and is not what this trace has.
    plain = replace(problem, steps=tuple(replace(step, reuses=()) for step in problem.steps))
    assert off_chip_traffic(problem, order, peak_of(plain, order), block).total == 0
    fetched = [
        off_chip_traffic(problem, order, size, block_bytes=1).fetched for size in (1, whole // 4, whole // 2, whole)
    ]
    assert fetched == sorted(fetched, reverse=True)


@given(problems(), st.integers(0, 3))
@examples(40)
def test_random_orders_are_orders(problem: ScheduleProblem, seed: int) -> None:
    graph = memory_graph(problem)
    check_order(problem, random_order(graph.needs, graph.feeds, Random(seed)))
    peaks = peaks_of_random_orders(problem, 5, seed)
    assert peaks == peaks_of_random_orders(problem, 5, seed)
    assert list(peaks) == sorted(peaks)
    assert len(peaks) == 5


def test_random_orders_of_two_branches_have_all_peaks() -> None:
    """Wide then narrow, twice: one after the other needs 11, both wide at once 20."""
    steps = (Step((), (0,)), Step((0,), (1,)), Step((), (2,)), Step((2,), (3,)), Step((1, 3), (4,)))
    problem = ScheduleProblem((10, 1, 10, 1, 1), steps, (), (4,))
    orders = [(0, 1, 2, 3, 4), (0, 2, 1, 3, 4)]
    expected = {peak_of(problem, order) for order in orders}
    assert set(peaks_of_random_orders(problem, 50, 0)) == expected
