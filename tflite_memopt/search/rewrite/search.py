"""Search for the concatenations to take apart and the tiles to make: those that lower the real cost, and no more.

A *site* is a concatenation together with everything below it that the rules can then be applied to; it is taken apart
as a whole or not at all, since one reader that still needs the whole tensor keeps it alive. There are two ways to do
it: by the exact rules alone, or by all that are allowed, which go further down and do not always pay. An operator that
makes many channels is a site as well, once for each number of tiles (``channels.py``): it is made a
concatenation of tiles first, which then is taken apart.

Several equal cells of a network bind together: taking one of them apart alone gains nothing. So the search starts from
all sites, or, where that costs more than none, from all that do not raise the head each on its own; drops, half after
half, those that the cost does not need; then toggles neighbors together, many and few, as long as that helps: two
concatenations that are alive at once gain nothing singly. It ends after costs of so many operators, which are the same
on every machine: the larger the model, the fewer sets are tried. The clock only stops extremely long searches, and the
result says so. The best so far is kept; savings per site are then not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import ErrorKind, InfeasibleError, UsageError
from ...memory.arrange import Cost
from ...model.ir.change import Exactness, Refusal
from ...model.ir.copying import copy_model, drop_dead_tensors
from ...model.ir.editor import label
from ...model.ir.model import Graph, Model, Operator
from ...solvers.graph.side_by_side import side_by_side
from .channels import channel_tiles
from .engine import EXACT, Applied, Driver, Rule


@dataclass(frozen=True, order=True)
class Site:
    """The operator at a position of the main graph, and the rules to use below it.

    ``tiles``: into how many an operator is cut that makes many channels; 0 for a concatenation that is there.
    """

    position: int
    is_exact: bool
    tiles: int = 0

    def __str__(self) -> str:
        return f"{self.position}{f'x{self.tiles}' if self.tiles else ''}{'e' * self.is_exact}"


Sites = frozenset[Site]
"""At most one site for each position."""


def sites_in(text: str) -> Sites:
    """Return the sites that print as these words: ``12 15e 30x4``. Raises UsageError, naming the one that is none."""
    return frozenset(map(_site_in, text.split()))


def _site_in(word: str) -> Site:
    position, _, tiles = word.removesuffix("e").partition("x")
    if not position.isdecimal() or not (tiles or "0").isdecimal():
        raise UsageError(f"'{word}' is not a site; examples are '12', '15e', and '30x4'", ErrorKind.SYNTAX)
    return Site(int(position), word.endswith("e"), int(tiles or 0))


CostOf = Callable[[Model], Cost]
_LEAST_AT_ONCE = 400
"""Operators of all models whose costs are computed at once: with fewer, processes take longer than they save."""
_AHEAD = 8
"""Windows whose costs are computed at once."""


@dataclass(frozen=True)
class SiteUse:
    """A site that was taken apart: the applied rules, and the bytes of the objective that go up without it.

    ``operator`` is the name of the concatenation, or of the tensor in tiles. ``saved_bytes`` is 0 where no cost was
    left to measure it.
    """

    site: Site
    operator: str
    applied: tuple[Applied, ...]
    saved_bytes: int


@dataclass(frozen=True)
class SiteLimit:
    """``effort``: operators of the models whose costs a search may ask for.

    ``below``: a need in bytes. Where all sites together leave a head that is too large for it, nothing more is tried.
    ``jobs``: processes that work out costs side by side.
    """

    effort: int
    below: int | None = None
    jobs: int = 1


@dataclass(frozen=True)
class TakenApart:
    """The best model, the sites taken apart in it, and refused sites."""

    model: Model
    cost: Cost
    sites: tuple[SiteUse, ...]
    refused: tuple[Refusal, ...]


@dataclass(frozen=True)
class Start:
    """The start of a search: a model, which stays as it is, and its operators that may be sites.

    ``names``: of those, by position. ``tiles``: the numbers of tiles.
    """

    model: Model
    rules: Sequence[Rule]
    allowed: Collection[Exactness]
    names: Mapping[int, str]
    tiles: tuple[int, ...] = (0,)

    def taken_apart(self, sites: Iterable[Site], is_trial: bool = True) -> tuple[Model, dict[Site, Driver]]:
        """A copy with these sites taken apart, last one first: readers of a concatenation are in parts before it is.

        It has no dead tensors, which TFLM would place in the arena.
        """
        copied = copy_model(self.model)
        graph, operators = copied.main, list(copied.main.operators)
        by_site, names = dict[Site, Driver](), dict[Graph, set[str]]()
        for site in sorted(sites, reverse=True):
            by_site[site] = Driver(copied, EXACT if site.is_exact else self.allowed, is_trial, names)
            if operators[site.position] in graph.operators:
                _take_apart(by_site[site], self.rules, graph, operators[site.position], site.tiles)
        drop_dead_tensors(copied)
        return copied, by_site


def take_apart(start: Start, sites: Sites) -> tuple[Model, tuple[SiteUse, ...]]:
    """Return the model with these sites taken apart, and the changes at each; savings are not measured.

    Raises InfeasibleError when a position is none of the model.
    """
    operators = start.model.main.operators
    if sites and max(sites).position >= len(operators):
        raise InfeasibleError(
            f"site {max(sites)}: the rewritten model has {len(operators)} operators", ErrorKind.DECISION
        )
    model, by_site = start.taken_apart(sites, is_trial=False)
    uses = (SiteUse(at, label(operators[at.position]), tuple(by_site[at].applied), 0) for at in sorted(sites))
    return model, tuple(uses)


def _take_apart(driver: Driver, rules: Sequence[Rule], graph: Graph, operator: Operator, tiles: int) -> None:
    if not tiles:
        driver.apply_below(rules, graph, operator)
        return
    whole = operator.outputs[0]
    if driver.apply_at((channel_tiles(tiles),), graph, operator) and whole.producer is not None:
        driver.apply_below(rules, graph, whole.producer)


def search(start: Start, cost_of: CostOf, limit: SiteLimit) -> TakenApart:
    """Return the model with the best set of sites taken apart; the model of ``start`` itself when none pays.

    None and all sites are compared whatever the limit is.
    """
    return _SiteSearch(start, cost_of, limit).run()


class _SiteSearch:
    def __init__(self, start: Start, cost_of: CostOf, limit: SiteLimit) -> None:
        self._given, self._cost_of, self._limit = start, cost_of, limit
        self._costs: dict[Sites, Cost] = {}
        self._effort_left = limit.effort
        # Results of other processes: they count once requested.
        self._ahead: dict[Sites, Cost] = {}

    def run(self) -> TakenApart:
        every, refused = self._sites_and_refusals()
        candidates = frozenset().union(*every)
        best = self._without_what_is_not_needed(self._start(every))
        if best or not self._is_hopeless(every):
            best = self._toggled(best, sorted(candidates))
        # Where the search has ended early, one of the first may be better than the present one.
        best = min((best, *self._costs), key=self._cost)
        saved = {site: self._saved_by(site, best) for site in sorted(best)}
        left = {site.position for site in candidates} - {site.position for site in best}
        reasons = [*refused, *(self._no_gain(position) for position in sorted(left))]
        return self._made(best, saved, reasons)

    def _made(self, sites: Sites, saved: Mapping[Site, int], refused: Iterable[Refusal]) -> TakenApart:
        start = self._given
        model, by_site = start.taken_apart(sites, is_trial=False) if sites else (start.model, {})
        uses = tuple(
            SiteUse(site, start.names[site.position], tuple(by_site[site].applied), saved[site])
            for site in sorted(sites)
        )
        return TakenApart(model, self._cost(sites), uses, tuple(refused))

    def _sites_and_refusals(self) -> tuple[tuple[Sites, ...], Iterable[Refusal]]:
        """Return the sites where some rule applies, for each way; and the refusals when all of them are taken apart.

        One way only where no rule applies that is not exact.
        """
        ways: list[Sites] = []
        refused: dict[tuple[str, str], Refusal] = {}
        for tiles in self._given.tiles:
            wide = self._given.taken_apart(Site(position, False, tiles) for position in self._given.names)[1]
            refused |= {key: each for driver in wide.values() for key, each in driver.refused.items()}
            if is_one_way(wide):
                ways.append(frozenset(replace(site, is_exact=True) for site in _uses(wide)))
                continue
            exact = self._given.taken_apart(Site(position, True, tiles) for position in self._given.names)[1]
            ways += [_uses(exact), _uses(wide)]
        return tuple(ways), refused.values()

    def _cost(self, sites: Sites) -> Cost:
        if sites not in self._costs:
            known = self._ahead.pop(sites) if sites in self._ahead else None
            self._costs[sites] = known or self._worked_out(sites)
            self._effort_left -= self._costs[sites].operators
        return self._costs[sites]

    def _worked_out(self, sites: Sites) -> Cost:
        return self._cost_of(self._given.taken_apart(sites)[0])

    def _look_ahead(self, wanted: Iterable[Sites]) -> None:
        """Let several processes work out costs that are likely to be asked for next."""
        new = [each for each in dict.fromkeys(wanted) if each not in self._costs and each not in self._ahead]
        operators = len(self._given.model.main.operators)
        if self._limit.jobs > 1 and len(new) * operators >= _LEAST_AT_ONCE:
            new = new[: 1 + max(0, self._effort_left) // operators]
            self._ahead |= zip(new, side_by_side(self._worked_out, new, self._limit.jobs), strict=True)

    def _start(self, every: Sequence[Sites]) -> Sites:
        none: Sites = frozenset()
        self._look_ahead((none, *every))
        best = min((none, *every), key=self._cost)
        if best or self._is_hopeless(every):
            return best
        alone = sorted(frozenset().union(*every))
        self._look_ahead(frozenset({site}) for site in alone)
        for site in alone:
            if self._may_go_on() and self._cost(frozenset({site})).head <= self._cost(none).head:
                best = _with(best, site)
        return min((none, best), key=self._cost) if self._may_go_on() else none

    def _is_hopeless(self, every: Sequence[Sites]) -> bool:
        """Tell whether the limit is out of reach: fewer sites take less beside the head, but leave no smaller one."""
        if self._limit.below is None:
            return False
        none = self._cost(frozenset())
        least = min((none.head, *(self._cost(sites).head for sites in every)))
        return none.need - none.head + least >= self._limit.below

    def _without_what_is_not_needed(self, sites: Sites) -> Sites:
        """Drop parts, halves first, as long as the cost does not rise."""
        size = len(sites)
        while size and self._may_go_on():
            ordered = sorted(sites)
            for start in range(0, len(ordered), size):
                if self._may_go_on():
                    sites = min((sites - set(ordered[start : start + size]), sites), key=self._cost)
            size //= 2
        return sites

    def _toggled(self, best: Sites, candidates: Sequence[Site]) -> Sites:
        """Add the sites that are out, drop those that are in, window by window, until a whole pass gains nothing."""
        before = None
        while best != before and self._may_go_on():
            before = best
            windows = list(_windows(candidates))
            for at, window in enumerate(windows):
                if self._may_go_on():
                    other = _toggle(best, window)
                    if other not in self._costs and other not in self._ahead:
                        # As long as none is better, these come next.
                        self._look_ahead(_toggle(best, each) for each in windows[at : at + _AHEAD])
                    best = min((best, other), key=self._cost)
        return best

    def _saved_by(self, site: Site, best: Sites) -> int:
        """Compute the bytes that are added without it; 0 where no effort is left to measure it."""
        without = best - {site}
        is_known = without in self._costs or self._may_go_on()
        return self._cost(without).need - self._cost(best).need if is_known else 0

    def _may_go_on(self) -> bool:
        return self._effort_left > 0

    def _no_gain(self, position: int) -> Refusal:
        reason = "taking it apart does not lower the memory to reserve, within the limit on run time"
        return Refusal(
            "search", self._given.names[position], reason if self._may_go_on() else f"as far as was tried, {reason}"
        )


def is_one_way(by_site: Mapping[Site, Driver]) -> bool:
    """Tell whether all rules that were applied are exact, so that the exact ones alone would do the same."""
    return all(each.exactness == "exact" for driver in by_site.values() for each in driver.applied)


def _uses(by_site: Mapping[Site, Driver]) -> Sites:
    """Return the sites where some rule takes the concatenation apart: tiles that are joined at once are of no use."""
    return frozenset(site for site, driver in by_site.items() if len(driver.applied) > (site.tiles > 0))


def _windows(candidates: Sequence[Site]) -> Iterator[Sequence[Site]]:
    """Runs of neighbors that overlap by half: all, then ever shorter ones, down to single sites."""
    size = len(candidates)
    while size:
        for start in range(0, len(candidates), max(1, size // 2)):
            yield candidates[start : start + size]
        size = -(-size // 2) if size > 1 else 0


def _toggle(sites: Sites, window: Iterable[Site]) -> Sites:
    for site in window:
        sites = sites - {site} if site in sites else _with(sites, site)
    return sites


def _with(sites: Sites, site: Site) -> Sites:
    """These sites and this one, which takes the place of the other one at its position."""
    return frozenset(each for each in sites if each.position != site.position) | {site}
