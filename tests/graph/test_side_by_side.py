"""Several processes give the answers of one, whatever becomes of them, and none is left."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkProcess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from tflite_memopt.solvers.graph import side_by_side as sides
from tflite_memopt.solvers.graph.side_by_side import side_by_side, usable_cores

ITEMS = list(range(20))


_OTHERS: list[object] = []
"""Processes of tests that came before on the same worker, such as those of a cluster."""


@pytest.fixture(autouse=True)
def _others() -> None:
    _OTHERS[:] = multiprocessing.active_children()


def are_all_gone() -> bool:
    """Return whether the processes of this test end at once when they are killed: nothing else waits for them."""
    own = [process for process in multiprocessing.active_children() if process not in _OTHERS]
    for process in own:
        process.join(10)
    return not any(process.is_alive() for process in own)


def squares(jobs: int) -> list[int]:
    return side_by_side(lambda n: n * n, ITEMS, jobs)


@pytest.mark.parametrize("jobs", [1, 2, 3, 50])
def test_answers_come_in_order(jobs: int) -> None:
    assert squares(jobs) == [n * n for n in ITEMS]
    assert are_all_gone()


def test_the_work_is_divided() -> None:
    at_work = side_by_side(lambda _: os.getpid(), ITEMS, 2)
    assert os.getpid() not in at_work


def test_none_is_an_answer_and_nothing_is_no_work() -> None:
    assert side_by_side(lambda _: None, [1, 2], 2) == [None, None]
    assert side_by_side(lambda _: None, [], 2) == []


@examples(10)
@given(st.sets(st.sampled_from(ITEMS)), st.integers(2, 3))
def test_what_dead_processes_leave_is_made_up_for(deadly: set[int], jobs: int) -> None:
    here = os.getpid()

    def square(n: int) -> int:
        if n in deadly and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return n * n

    assert side_by_side(square, ITEMS, jobs) == squares(1)
    assert are_all_gone()


@pytest.mark.parametrize("stands_still", [lambda: time.sleep(3600), lambda: os.kill(os.getpid(), signal.SIGSTOP)])
def test_what_stands_still_is_ended_and_made_up_for(
    stands_still: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.getpid()
    monkeypatch.setattr(sides, "_STANDSTILL_SECONDS", 0.3)

    def square(n: int) -> int:
        if n == 3 and os.getpid() != here:
            stands_still()
        return n * n

    started = time.monotonic()
    assert side_by_side(square, ITEMS, 2) == squares(1)
    assert time.monotonic() - started < 30
    assert are_all_gone()


@pytest.mark.slow
def test_what_computes_for_long_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "_STANDSTILL_SECONDS", 0.3)

    def spin(_: int) -> int:
        until = time.process_time() + 0.5
        while time.process_time() < until:
            pass
        return os.getpid()

    assert os.getpid() not in side_by_side(spin, [1, 2], 2)


def test_an_exception_is_the_one_that_one_process_would_raise() -> None:
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda n: 1 // (n - 7), ITEMS, 2)
    assert are_all_gone()


@pytest.mark.slow
def test_an_interruption_ends_all() -> None:
    here = os.getpid()

    def interrupt(n: int) -> None:
        os.kill(here, signal.SIGINT)
        signal.pause()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            side_by_side(interrupt, ITEMS, 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert are_all_gone()


def test_where_the_system_gives_no_process_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: ForkProcess) -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(ForkProcess, "start", refuse)
    assert squares(2) == squares(1)


def test_there_are_no_more_processes_than_cores() -> None:
    assert 1 <= usable_cores() <= min(4, os.cpu_count() or 1)
