"""Which points are the front, and which one a budget picks."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tflite_memopt.options import Options
from tflite_memopt.report.exploration import chosen_of, figures_of, flags_of, front_of
from tflite_memopt.report.model import FrontPoint

POINTS = st.lists(
    st.builds(
        FrontPoint,
        *[st.integers(1, 6) for _ in range(5)],
        limits=st.sampled_from(["--objective total", "--objective head"]),
        stripes=st.just(()),
    ),
    min_size=1,
    max_size=12,
)


def beats(one: FrontPoint, other: FrontPoint) -> bool:
    return all(a <= b for a, b in zip(figures_of(one), figures_of(other), strict=True))


@given(POINTS)
def test_the_front_has_no_point_that_another_one_beats_and_loses_none(points: list[FrontPoint]) -> None:
    front = front_of(points)
    assert not any(beats(a, b) for a in front for b in front if a is not b)
    assert all(any(beats(kept, point) for kept in front) for point in points)
    assert set(front) <= set(points)
    assert [point.total for point in front] == sorted(point.total for point in front)


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
    prices = [(point.macs, point.operators, point.file_bytes) for point in fitting]
    assert (picked.macs, picked.operators, picked.file_bytes) == min(prices)


def test_without_a_budget_the_smallest_is_chosen() -> None:
    small = FrontPoint(2, 9, 1, 1, 1, "", ())
    points = (small, replace(small, total=3, head=1))
    assert (chosen_of(points, "total", None).point, chosen_of(points, "total", None).fits) == (0, None)
    assert chosen_of(points, "head", None).point == 1


def test_limits_are_said_as_flags_of_optimize() -> None:
    assert flags_of(Options(cascade=False, rewrite=False)) == "--objective total --no-rewrite --no-cascade"
    striped = Options(objective="head", loops=False, max_extra_macs=0.05)
    assert flags_of(striped) == "--objective head --no-loops --max-extra-macs 5%"
