"""Select the points of the front, and the one that a budget picks."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tflite_memopt.options import Options
from tflite_memopt.report.exploration import chosen_of, flags_of, front_of
from tflite_memopt.report.model import FrontPoint

POINTS = st.lists(
    st.builds(
        FrontPoint,
        *[st.integers(1, 6) for _ in range(2)],
        st.sampled_from([0.0, 0.02, 0.1]),
        *[st.integers(1, 6) for _ in range(3)],
        limits=st.sampled_from(["--objective total", "--objective head"]),
        stripes=st.just(()),
    ),
    min_size=1,
    max_size=12,
)


BEFORE = FrontPoint(5, 5, 0.0, 1, 1, 1, "", ())


def beats(one: FrontPoint, other: FrontPoint) -> bool:
    return one.total <= other.total and one.slowdown <= other.slowdown


@given(POINTS)
def test_the_front_has_no_point_that_another_one_beats_and_loses_none(points: list[FrontPoint]) -> None:
    front = front_of(points, BEFORE, "total")
    assert not any(beats(a, b) for a in front for b in front if a is not b)
    assert all(any(beats(kept, point) for kept in front) for point in points if point.total < BEFORE.total)
    assert set(front) <= set(points)
    assert [point.total for point in front] == sorted(point.total for point in front)


@given(POINTS)
def test_what_needs_no_less_than_the_model_as_it_came_is_no_point_unless_nothing_else_is(
    points: list[FrontPoint],
) -> None:
    front = front_of(points, BEFORE, "total")
    assert all(point.total < BEFORE.total for point in front[1:])
    assert front[0].total == min(point.total for point in points)


def test_a_limit_on_run_time_as_flags() -> None:
    assert [flags_of(Options(max_slowdown=each)) for each in (0.0, 0.05, 0.1, 0.3)] == [
        "--max-slowdown 0",
        "--max-slowdown 5",
        "--max-slowdown 10",
        "--max-slowdown 30",
    ]


@given(POINTS, st.sampled_from(["total", "head"]), st.integers(1, 7))
def test_a_budget_picks_the_cheapest_that_fits_or_the_nearest(
    points: list[FrontPoint], objective: str, budget: int
) -> None:
    choice = chosen_of(points, "total" if objective == "total" else "head", budget)
    needs = [getattr(point, objective) for point in points]
    assert choice.fits == (min(needs) <= budget)
    picked = points[choice.point]
    if not choice.fits:
        assert needs[choice.point] == min(needs)
        return
    assert needs[choice.point] <= budget
    fitting = [point for point, need in zip(points, needs, strict=True) if need <= budget]
    prices = [(point.slowdown, point.operators, point.file_bytes) for point in fitting]
    assert (picked.slowdown, picked.operators, picked.file_bytes) == min(prices)


def test_without_a_budget_the_smallest_is_chosen() -> None:
    small = FrontPoint(2, 9, 0.0, 1, 1, 1, "", ())
    points = (small, replace(small, total=3, head=1))
    assert (chosen_of(points, "total", None).point, chosen_of(points, "total", None).fits) == (0, None)
    assert chosen_of(points, "head", None).point == 1


def test_what_is_left_out_is_said_as_flags_of_optimize() -> None:
    assert flags_of(Options(cascade=False, rewrite=False)) == "--changes order"
    assert flags_of(Options(cascade=False)) == "--changes rewrites"
    assert flags_of(Options(every_byte=True)) == "--changes all --max-slowdown 10"
