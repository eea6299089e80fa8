"""Half-open intervals, and the package's one clock."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflite_memopt.solvers.graph.interval import intersect
from tflite_memopt.solvers.graph.limits import Deadline, deadline_in, now


@dataclass(frozen=True)
class Span:
    start: int
    end: int


SPANS = st.tuples(st.integers(-5, 5), st.integers(1, 5)).map(lambda pair: Span(pair[0], sum(pair)))


@given(SPANS, SPANS)
def test_intervals_intersect_where_they_share_a_moment(first: Span, second: Span) -> None:
    shared = set(range(first.start, first.end)) & set(range(second.start, second.end))
    assert intersect(first, second) is intersect(second, first) is bool(shared)


def test_a_deadline_passes() -> None:
    assert deadline_in(0).has_passed()
    assert deadline_in(-1).left() == Deadline(0.0).left() == 0
    assert not deadline_in(1000).has_passed()
    assert 0 < deadline_in(1000).left() <= 1000


def test_the_clock_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 < now() <= now()
