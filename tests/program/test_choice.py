"""Which cuts make the largest part smallest: against every path."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from tflite_memopt.run.parts.choice import Price, Stretch, Stretches, at_most, choose, fewest

Prices = dict[Stretch, tuple[Price, Price]]


@st.composite
def prices(draw: st.DrawFn) -> tuple[list[int], Prices]:
    """The tail of each step, and of all stretches of a few steps their prices under two limits.

    Under each a longer stretch needs no less, but for the tail, and adds no less work; the narrower limit takes more
    bytes and less work.
    """
    tails = draw(st.lists(st.integers(0, 300), min_size=1, max_size=5))
    heads: dict[Stretch, tuple[int, int]] = {}
    works: dict[Stretch, tuple[int, int]] = {}
    for length in range(1, len(tails) + 1):
        for first in range(len(tails) - length + 1):
            end = first + length
            inside = [(a, b) for a, b in heads if first <= a and b <= end]
            wide = max([draw(st.integers(1, 5000)), *(heads[each][0] for each in inside)])
            narrow = max([wide + draw(st.integers(0, 900)), *(heads[each][1] for each in inside)])
            less = max([draw(st.integers(0, 30)), *(works[each][1] for each in inside)])
            heads[first, end] = wide, narrow
            works[first, end] = max([less + draw(st.integers(0, 30)), *(works[each][0] for each in inside)]), less
    found = {}
    for (first, end), needs in heads.items():
        wide_price, narrow_price = (
            Price(need + sum(tails[first:end]), work) for need, work in zip(needs, works[first, end], strict=True)
        )
        found[first, end] = wide_price, narrow_price
    return tails, found


def least(steps: int, found: Prices, parts: int, work: int) -> int | None:
    """By looking at every path."""
    needs = []
    for count in range(parts):
        for cuts in combinations(range(1, steps), count):
            path = list(pairwise((0, *cuts, steps)))
            for limits in product(range(2), repeat=len(path)):
                chosen = [found[stretch][limit] for stretch, limit in zip(path, limits, strict=True)]
                if sum(price.work for price in chosen) <= work:
                    needs.append(max(price.need for price in chosen))
    return min(needs, default=None)


@given(prices(), st.integers(1, 5), st.integers(0, 60), st.data())
def test_no_path_is_better(given_: tuple[list[int], Prices], parts: int, work: int, data: st.DataObject) -> None:
    tails, found = given_
    steps = len(tails)

    def below(price: Price) -> Price:
        return Price(data.draw(st.integers(0, price.need)), data.draw(st.integers(0, price.work)))

    def more(stretch: Stretch, other: Stretch) -> int:
        return sum(tails[slice(*other)]) - sum(tails[slice(*stretch)])

    bounds = {stretch: Price(below(wide).need, below(narrow).work) for stretch, (wide, narrow) in found.items()}
    drafts = {stretch: [*map(below, prices)] for stretch, prices in found.items()}
    stretches = Stretches(
        range(steps + 1),
        bounds.__getitem__,
        drafts.__getitem__,
        lambda stretch, limit: found[stretch][limit],
        more,
        1000,
        1000,
    )
    choice, best = choose(stretches, parts, work), least(steps, found, parts, work)
    assert (choice is None) == (best is None)
    if choice is None or best is None:
        return
    chosen = [found[stretch][limit] for stretch, limit in zip(choice.stretches, choice.limits, strict=True)]
    assert choice.need == max(price.need for price in chosen)
    assert choice.work == sum(price.work for price in chosen) <= work
    assert len(choice.stretches) <= parts
    assert choice.bound <= best <= choice.need <= 1.02 * best
    fewer = fewest(stretches, parts, work)
    assert fewer is not None
    assert fewer.need <= 1.02 * best  # one gap, not one after the other
    assert len(fewer.stretches) <= len(choice.stretches)
    assert choose(stretches, parts, work, most=choice.bound - 1) is None


Estimates = Callable[[Stretch], int]


def unknown(*_: Stretch) -> int:
    """What a stretch needs says nothing of those around it."""
    return -1_000_000


def guessed(
    steps: int, estimate: Estimates, measure: Callable[[Stretch, int], Price], measured: int = 1000, drafted: int = 1000
) -> Stretches:
    """One price of each stretch, whose bound and draft are the same guess."""

    def guess(stretch: Stretch) -> Price:
        return Price(estimate(stretch), 0)

    return Stretches(range(steps + 1), guess, lambda stretch: [guess(stretch)], measure, unknown, measured, drafted)


def test_fewer_parts_are_within_one_gap_of_the_least() -> None:
    """Two parts need 1,025, 2.5 % more, and are within 2 % of the estimate of another cut."""
    needs = {(0, 1): 1000, (1, 2): 1000, (2, 3): 1000, (0, 2): 1025}
    guesses = {(0, 2): 1009, (1, 3): 1010, (0, 3): 3000}
    stretches = guessed(
        3, lambda stretch: guesses.get(stretch, 1000), lambda stretch, _: Price(needs.get(stretch, 5000), 0)
    )
    found = fewest(stretches, 3, 0)
    assert found is not None
    assert (found.need, len(found.stretches)) == (1000, 3)


def test_fewer_parts_that_are_better_than_estimated_are_found_with_more_allowed() -> None:
    in_two, in_three = {(0, 2), (2, 3)}, {(0, 1), (1, 2)}  # in three they share the last stretch

    def estimate(stretch: Stretch) -> int:
        return 40 if stretch == (2, 3) else 100 if stretch in in_two else 50

    def measure(stretch: Stretch, _: int) -> Price:
        return Price(10 if stretch in in_two else 50 if stretch in in_three else 500, 0)

    def stretches() -> Stretches:
        return guessed(3, estimate, measure)

    assert [choose(stretches(), parts, 0, gap=0).need for parts in (2, 3)] == [10, 50]  # type: ignore[union-attr]
    assert [at_most(stretches(), parts, 0).need for parts in (2, 3)] == [10, 10]  # type: ignore[union-attr]


@given(st.integers(1, 5), st.integers(0, 60), st.integers(1, 4), st.integers(1, 9), st.data())
def test_more_parts_never_end_above_fewer_whatever_the_estimates_are(
    steps: int, work: int, measured: int, drafted: int, data: st.DataObject
) -> None:
    every = list(combinations(range(steps + 1), 2))
    sizes = st.integers(1, 5000)
    found = {each: Price(data.draw(sizes), data.draw(st.integers(0, 30))) for each in every}
    guesses = {each: data.draw(sizes) for each in every}
    needs = []
    for parts in range(1, 6):
        stretches = guessed(steps, guesses.__getitem__, lambda s, _: found[s], measured, drafted)
        choice = at_most(stretches, parts, work)
        needs.append(10_000 if choice is None else choice.need)
    assert needs[1:] == sorted(needs[1:], reverse=True)


def test_what_is_not_on_a_good_path_is_not_measured_and_each_stretch_is_bounded_once() -> None:
    measured, bounded = [], []

    def bound(stretch: Stretch) -> Price:
        bounded.append(stretch)
        return Price(90 * (stretch[1] - stretch[0]), 0)

    def measure(stretch: Stretch, _: int) -> Price:
        measured.append(stretch)
        return Price(100 * (stretch[1] - stretch[0]), 0)

    def draft(stretch: Stretch) -> list[Price]:
        return [Price(95 * (stretch[1] - stretch[0]), 0)]

    positions = range(21)
    choice = choose(Stretches(positions, bound, draft, measure, unknown, 1000, 1000), 2, 0)
    assert choice is not None
    assert choice.need == 1000
    assert len(set(measured)) < 20
    assert sorted(bounded) == list(combinations(positions, 2))


def test_the_search_ends_after_so_many_measures() -> None:
    stretches = guessed(8, lambda _: 0, lambda s, _: Price(s[1] - s[0], 0), 3)
    assert choose(stretches, 4, 0) is None or len(stretches.known) <= 3


def test_of_stretches_that_are_not_drafted_in_time_none_is_chosen() -> None:
    """The first path, whose steps are all that may be drafted, needs 10; the others would need 5."""
    drafted = []

    def draft(stretch: Stretch) -> list[Price]:
        drafted.append(stretch)
        return [Price(10 if len(drafted) < 3 else 5, 0)]

    def measure(stretch: Stretch, _: int) -> Price:
        return Price(10 if stretch in drafted[:2] else 5, 0)

    stretches = Stretches(range(5), lambda s: Price(s[1] - s[0], 0), draft, measure, unknown, 1000, 4)
    choice = choose(stretches, 2, 0)
    assert choice is not None
    assert choice.need == 10
    assert list(choice.stretches) == drafted == [(0, 2), (2, 4)]


def test_a_stretch_without_a_price_is_on_no_path() -> None:
    """Of three steps the first two have no place in one part: neither a bound nor a draft has a price for them."""
    for bound in (None, Price(1, 0)):
        stretches = Stretches(
            range(4),
            lambda s, bound=bound: bound if s[1] - s[0] > 1 else Price(1, 0),  # type: ignore[misc]
            lambda s: [Price(s[1] - s[0], 0)] if s[1] - s[0] == 1 else [],
            lambda s, _: Price(s[1] - s[0], 0),
            unknown,
            1000,
            1000,
        )
        assert choose(stretches, 2, 0) is None
        choice = choose(stretches, 3, 0)
        assert choice is not None
        assert choice.cuts == (1, 2)
