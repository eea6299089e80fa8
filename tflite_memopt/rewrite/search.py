"""Which concatenations to take apart: those that lower the real cost, and no others.

A *site* is a concatenation together with everything below it that the rules can then be applied to; it is taken apart
as a whole or not at all, since one reader that still needs the whole tensor keeps it alive.

Several equal cells of a network bind together: taking one of them apart alone gains nothing. So the search starts from
all sites, or, where that costs more than none, from all that do not raise the head each on its own; drops, half after
half, those that the cost does not need; then tries to add single ones. When its time is up it keeps the best so far;
what a site saves is then not measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ..ir.copying import copy_model
from ..ir.model import Model
from .dead_tensors import drop_dead_tensors
from .driver import Driver, label
from .rule import Applied, Exactness, Refused, Rule

Sites = frozenset[int]
"""Positions of concatenations among the operators of the main graph."""


@dataclass(frozen=True, order=True)
class Cost:
    """What a model costs, compared field by field: bytes of the objective, head, and then what they are paid with."""

    need: int
    head: int
    macs: int
    operators: int


CostOf = Callable[[Model], Cost]


@dataclass(frozen=True)
class SiteUse:
    """A site that was taken apart: what was applied, and the bytes of the objective that go up without it.

    ``saved_bytes`` is 0 where there was no time to measure it.
    """

    concatenation: str
    applied: tuple[Applied, ...]
    saved_bytes: int


@dataclass(frozen=True)
class Found:
    """The best model, the sites taken apart in it, and what was refused on the way."""

    model: Model
    cost: Cost
    sites: tuple[SiteUse, ...]
    refused: tuple[Refused, ...]


def search(
    model: Model, rules: Sequence[Rule], allowed: Collection[Exactness], cost_of: CostOf, seconds: float
) -> Found:
    """The model with the best set of sites taken apart; ``model`` itself when none pays. It is not changed."""
    return _Search(model, rules, allowed, cost_of, time.monotonic() + seconds).run()


class _Search:
    def __init__(
        self, model: Model, rules: Sequence[Rule], allowed: Collection[Exactness], cost_of: CostOf, deadline: float
    ) -> None:
        self._model, self._rules, self._allowed = model, rules, allowed
        self._cost_of, self._deadline = cost_of, deadline
        self._costs: dict[Sites, Cost] = {}
        self._names = {at: label(op) for at, op in enumerate(model.main.operators) if op.name == "CONCATENATION"}

    def run(self) -> Found:
        everything, refused = self._sites_and_refusals()
        best = self._without_what_is_not_needed(self._start(everything))
        for site in sorted(everything - best):
            if self._has_time():
                best = min((best, best | {site}), key=self._cost)
        cost = self._cost(best)
        uses = tuple(self._use(site, best, cost) for site in sorted(best))
        reasons = [*refused, *(self._no_gain(site) for site in sorted(everything - best))]
        return Found(self._rewritten(best)[0] if best else self._model, cost, uses, tuple(reasons))

    def _sites_and_refusals(self) -> tuple[Sites, Iterable[Refused]]:
        """The sites where some rule applies, and what is refused when all of them are taken apart."""
        _, by_site = self._rewritten(frozenset(self._names))
        refused = {key: each for driver in by_site.values() for key, each in driver.refused.items()}
        return frozenset(site for site, driver in by_site.items() if driver.applied), refused.values()

    def _rewritten(self, sites: Sites) -> tuple[Model, dict[int, Driver]]:
        """A copy with these sites taken apart, last one first: what is below is in pieces before the one above.

        It has no dead tensors, which TFLM would place in the arena.
        """
        copied = copy_model(self._model)
        graph, operators = copied.main, list(copied.main.operators)
        by_site = {}
        for site in sorted(sites, reverse=True):
            by_site[site] = Driver(copied, self._allowed)
            if operators[site] in graph.operators:
                by_site[site].apply_below(self._rules, graph, operators[site])
        drop_dead_tensors(copied)
        return copied, by_site

    def _cost(self, sites: Sites) -> Cost:
        if sites not in self._costs:
            self._costs[sites] = self._cost_of(self._rewritten(sites)[0])
        return self._costs[sites]

    def _start(self, everything: Sites) -> Sites:
        none: Sites = frozenset()
        if self._cost(everything) < self._cost(none):
            return everything
        head = self._cost(none).head
        harmless = {site for site in everything if self._has_time() and self._cost(frozenset({site})).head <= head}
        return min((none, frozenset(harmless)), key=self._cost) if self._has_time() else none

    def _without_what_is_not_needed(self, sites: Sites) -> Sites:
        """Drop parts, halves first, as long as the cost does not rise."""
        size = len(sites)
        while size and self._has_time():
            ordered = sorted(sites)
            for start in range(0, len(ordered), size):
                if self._has_time():
                    sites = min((sites - set(ordered[start : start + size]), sites), key=self._cost)
            size //= 2
        return sites

    def _use(self, site: int, best: Sites, cost: Cost) -> SiteUse:
        _, by_site = self._rewritten(best)
        without = best - {site}
        is_known = without in self._costs or self._has_time()
        saved = self._cost(without).need - cost.need if is_known else 0
        return SiteUse(self._names[site], tuple(by_site[site].applied), saved)

    def _has_time(self) -> bool:
        return time.monotonic() < self._deadline

    def _no_gain(self, site: int) -> Refused:
        return Refused("search", self._names[site], "taking it apart does not lower the memory to reserve")
