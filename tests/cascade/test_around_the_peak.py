"""Options that are looked for around the largest step first, against all options at once: the same selections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cascade.networks import TYPES, random_network
from tests.oracle.cells import cell_network
from tflite_memopt import Options, optimize
from tflite_memopt.analysis.bounds import io_lower_bound
from tflite_memopt.cascade import search
from tflite_memopt.cascade.arena_terms import arena_terms
from tflite_memopt.cascade.candidates import Candidates
from tflite_memopt.cascade.in_order import StripeSearch
from tflite_memopt.cascade.judge import Chosen
from tflite_memopt.cascade.predict import Aim, OptionFinder
from tflite_memopt.cascade.selection import BaseNeed, Option, SelectionLimits
from tflite_memopt.cascade.striped_region import LOOP_MODES, MODES, LoopMode, Mode
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.cost import Cost

LIMITS = SelectionLimits(1 << 40, 1 << 20)
BASE = BaseNeed(1000, 800, 200)
SHARES = (1.0, 0.9, 0.75, 0.6)
"""Parts of the need as it stands that are known to be reached: with the last ones often nothing is left."""

RANDOM_CASES = given(
    st.integers(0, 10_000),
    st.sampled_from(TYPES),
    st.sampled_from(("portable", "reference")),
    st.sampled_from(SHARES),
    st.booleans(),
)
"""A seed and a type of network, kernels, a part of the need, and whether the tail counts."""


class AllAtOnce(OptionFinder):
    """Works out every exit with the aim that it was given."""

    def _work_out(self, modes: Sequence[Mode | LoopMode], known: int) -> None:
        self._found |= {mode: {} for mode in modes}
        aim = Aim(self._aim.floor, min(self._aim.below, known), self._aim.limits, self._aim.base)
        self._add(modes, aim, [exit_ for exit_ in self._exits if self._may_end_at(exit_, aim)])


EVERY: tuple[Mode | LoopMode, ...] = (*MODES, *LOOP_MODES[:2])


def finder_of(kind: type[OptionFinder], model: Model, kernels: str, base: BaseNeed) -> OptionFinder:
    return kind(model, profile_named(kernels), Aim(io_lower_bound(model), 1 << 40, LIMITS, base))


def below_of(finder: OptionFinder, base: BaseNeed, share: float) -> int:
    return int(base.least(max(finder._needs), 0, 0) * share)


def selected(kind: type[OptionFinder], model: Model, kernels: str, base: BaseNeed, share: float) -> tuple[Any, int]:
    """The figures of all selections whose need may be below a part of what the model needs, and the ways looked at."""
    finder = finder_of(kind, model, kernels, base)
    return selected_by(finder, base, below_of(finder, base, share))


def selected_by(finder: OptionFinder, base: BaseNeed, below: int) -> tuple[Any, int]:
    options = finder.options(EVERY, below)
    candidates = Candidates(options, base, below, counts_run_time=False)
    every = [(candidates.least(each), candidates.chosen(each)) for each in candidates.within(LIMITS, below)]
    return sorted(every), finder.looked_at  # those of equal need come in the order in which their options were found


@pytest.mark.parametrize("kernels", ["portable", "reference"])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("seed", range(2))
def test_the_same_selections_in_cells(seed: int, share: float, kernels: str) -> None:
    model = cell_network(seed, width=8, resolution=12, cells=1)
    profile = profile_named(kernels)
    terms = arena_terms(model, profile)
    base = BaseNeed(terms.least_tail, terms.temporaries_with(0, 0, 0), terms.interface)
    found, looked_at = selected(OptionFinder, model, kernels, base, share)
    slowly, all_ways = selected(AllAtOnce, model, kernels, base, share)
    assert found == slowly
    assert looked_at <= all_ways
    assert found or share < 1


@settings(max_examples=15, deadline=None)
@RANDOM_CASES
def test_the_same_selections_in_random_networks(
    seed: int, dtype: DType, kernels: str, share: float, counts_tail: bool
) -> None:
    model = random_network(seed, dtype, 5, height=8)
    base = BaseNeed(1000, 800, 200, counts_tail)
    assert selected(OptionFinder, model, kernels, base, share)[0] == selected(AllAtOnce, model, kernels, base, share)[0]


@settings(max_examples=15, deadline=None)
@RANDOM_CASES
def test_the_bound_by_the_largest_step_holds_and_costs_no_selection(
    seed: int, dtype: DType, kernels: str, share: float, counts_tail: bool
) -> None:
    """``least`` was asked of what was known then; the options are asked for with what is known later."""
    model, base = random_network(seed, dtype, 5, height=8), BaseNeed(1000, 800, 200, counts_tail)
    finder = finder_of(OptionFinder, model, kernels, base)
    known, later = below_of(finder, base, 1.0), below_of(finder, base, share)
    least = finder.least(EVERY, known)
    assert least <= known
    every = selected(AllAtOnce, model, kernels, base, 1.0)[0]
    assert all(least <= need for need, _ in every if need < known)
    found = selected_by(finder, base, later)[0]
    assert found == selected(AllAtOnce, model, kernels, base, share)[0]


def test_an_order_that_cannot_come_below_what_is_known_has_no_other_options() -> None:
    model = cell_network(0, width=8, resolution=16, cells=2)
    finder = finder_of(OptionFinder, model, "portable", BASE)
    least = finder.least(EVERY, below_of(finder, BASE, 1.0))
    looked_at = finder.looked_at
    assert 0 < looked_at < selected(OptionFinder, model, "portable", BASE, 1.0)[1]
    finder.options(EVERY, least)
    assert finder.looked_at == looked_at


def test_the_order_with_the_smallest_bound_is_searched_first(monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked, begun = cell_network(0, width=8, resolution=12, cells=1), list[StripeSearch](), list[StripeSearch]()
    bound, run = StripeSearch.least_around_the_peak, StripeSearch.run

    def noted(one: StripeSearch, known: Cost) -> int:
        asked.append(one)
        return bound(one, known) - len(asked)  # both orders are the same one: the second is said to be better

    def ran(one: StripeSearch, *others: Any) -> Chosen:
        begun.append(one)
        return run(one, *others)

    def twice(model: Model, *_: Any) -> list[tuple[int, ...]]:
        return [tuple(range(len(model.main.operators)))] * 2

    monkeypatch.setattr(search, "promising_orders", twice)
    monkeypatch.setattr(StripeSearch, "least_around_the_peak", noted)
    monkeypatch.setattr(StripeSearch, "run", ran)
    optimize(write_model(model), Options(verify=False))
    assert begun[:2] == asked[1::-1]


def test_a_hopeless_model_is_left_alone() -> None:
    model = cell_network(0, width=8, resolution=16, cells=2)
    found, looked_at = selected(OptionFinder, model, "portable", BASE, 0.3)
    slowly, all_ways = selected(AllAtOnce, model, "portable", BASE, 0.3)
    assert found == slowly == []
    assert looked_at < all_ways


def option(bound: int, tail: int = 0, temporaries: int = 0) -> Option:
    return Option(2, 5, bound, tail, temporaries, 0, 0)


def aim(below: int) -> Aim:
    return Aim(100, below, LIMITS, BASE)


def test_what_is_beside_pays_for_the_step() -> None:
    """The step cannot stay as it is: the cheapest of its options is paid for, and the smallest bound is there."""
    found = aim(1500).beside(600, [option(300, 50, 10), option(200, 80, 5)])
    assert found is not None
    assert (found.floor, found.base.tail, found.base.temporaries) == (200, 1050, 805)


def test_a_step_that_may_stay_costs_nothing() -> None:
    found = aim(5000).beside(600, [option(700, 50), option(300, 40)])
    assert found is not None
    assert (found.floor, found.base) == (300, BASE)
    assert aim(5000).beside(600, []) == Aim(600, 5000, LIMITS, BASE)


def test_nothing_is_beside_a_step_that_can_neither_stay_nor_be_cut() -> None:
    assert aim(1500).beside(600, []) is None
