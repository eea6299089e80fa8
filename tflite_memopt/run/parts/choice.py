"""Choose the cuts that make the largest part smallest: a bottleneck path with lazily priced edges.

Steps 0 to n are cut at some of the positions between them. A stretch of steps has several prices: the more work it may
add, the fewer bytes it needs. The answer is a path from 0 to n of few stretches, whose largest need is least, and whose
work stays within a limit.

    repeat   the best path, by a bound or by drafts where prices are not known
             the best path of known prices: the answer, if it is hardly above that
             else draft the first path's stretches; where all are, find out the price of the one that needs most

Where bounds and drafts are never above the prices, nothing is missed (LazySP: Dellin and Srinivasa, "A Unifying
Formalism for Shortest Path Problems with Expensive Edge Evaluations via Lazy Best-First Search over Paths with Edge
Selectors", 2016, section III, with a path's largest edge as the selector).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import inf

_GAP = 0.02
"""Of the answer above its bound, as a share: a smaller gain does not pay for the search."""
Stretch = tuple[int, int]
"""Steps ``[first, end)``."""


@dataclass(frozen=True)
class Price:
    """A price of a stretch: ``need`` in bytes, ``work`` in the units of the limit on work."""

    need: int
    work: int


@dataclass(frozen=True)
class Choice:
    """``stretches`` in order, for each the number of its price in ``limits``. ``need``: the largest, in bytes.

    ``bound``: no path needs less, as far as drafts are right.
    """

    stretches: tuple[Stretch, ...]
    limits: tuple[int, ...]
    need: int
    work: int
    bound: int

    @property
    def cuts(self) -> tuple[int, ...]:
        """The positions between the stretches."""
        return tuple(first for first, _ in self.stretches[1:])


Options = list[tuple[Price, int]]
"""Prices of a stretch, each with its number."""


@dataclass
class Stretches:
    """What is known of the prices of the stretches between ``positions``, from 0 to the number of steps.

    ``bound``: need and work that no price of a stretch is below, told at once; None where it has none. ``draft``: its
    prices, about; none where it has none. ``measure``: its price by number, as it is. ``more``: bytes that a stretch
    around another one needs at least beyond what that one does, less than 0 where it frees some. ``most_measured``: how
    many prices may be measured. ``most_drafted``: steps of the stretches that may be drafted, after which only those
    are looked at.
    """

    positions: Sequence[int]
    bound: Callable[[Stretch], Price | None]
    draft: Callable[[Stretch], Sequence[Price]]
    measure: Callable[[Stretch, int], Price]
    more: Callable[[Stretch, Stretch], int]
    most_measured: int
    most_drafted: int
    known: dict[tuple[Stretch, int], Price] = field(default_factory=dict)
    _drafts: dict[Stretch, Sequence[Price]] = field(default_factory=dict)
    _bounds: dict[Stretch, Price | None] = field(default_factory=dict)

    @property
    def may_draft(self) -> bool:
        """Return whether more stretches may be drafted."""
        return sum(end - first for first, end in self._drafts) < self.most_drafted

    def options(self, stretch: Stretch, may_draft: bool = True) -> Options:
        """Prices as far as they are known, else drafts; where nothing is drafted and that may be done, the bound."""
        if stretch not in self._drafts:
            if stretch not in self._bounds:
                self._bounds[stretch] = self.bound(stretch)
            bound = self._bounds[stretch]
            return [(bound, 0)] if bound is not None and may_draft else []
        return [(self.known.get((stretch, at), draft), at) for at, draft in enumerate(self._drafts[stretch])]

    def known_options(self, stretch: Stretch) -> Options:
        """Known prices alone."""
        return [each for each in self.options(stretch) if (stretch, each[1]) in self.known]

    def find_out(self, choice: Choice) -> None:
        """Draft the stretches of a path; where all are, measure the one that needs most."""
        new = [stretch for stretch in choice.stretches if stretch not in self._drafts]
        for stretch in new:
            self._drafts[stretch] = self.draft(stretch)
            self._raise_around(stretch)
        if not new:
            pairs = zip(choice.stretches, choice.limits, strict=True)
            unknown = [pair for pair in pairs if pair not in self.known]
            pair = max(unknown, key=lambda pair: self._drafts[pair[0]][pair[1]].need)
            self.known[pair] = self.measure(*pair)

    def _raise_around(self, stretch: Stretch) -> None:
        """A longer stretch needs no less, but for what its ends are not."""
        least = min((draft.need for draft in self._drafts[stretch]), default=0)
        for other, bound in self._bounds.items():
            if bound is not None and other[0] <= stretch[0] and stretch[1] <= other[1]:
                self._bounds[other] = replace(bound, need=max(bound.need, least + self.more(stretch, other)))


def choose(
    stretches: Stretches, most_parts: int, most_work: int, enough: int = 0, gap: float = _GAP, most: float = inf
) -> Choice | None:
    """The path of at most ``most_parts`` stretches whose largest need is least, with the fewest parts and least work.

    One is good enough if no path needs less by more than ``gap``; with ``enough``, if it needs no more bytes. The
    limit on measured stretches ends the search only once a path is known. None where no path keeps to ``most_work``, or
    needs ``most`` bytes at most; with ``enough``, also where every path needs more than that.
    """
    while True:
        options = partial(stretches.options, may_draft=stretches.may_draft)
        bound = best_path(options, stretches.positions, most_parts, most_work)
        if bound is None or 0 < enough < bound.need or bound.need > most:
            return None
        found = best_path(stretches.known_options, stretches.positions, most_parts, most_work)
        if found is not None and found.need <= (enough or bound.need * (1 + gap)):
            return replace(found, bound=bound.need)
        if found is not None and len(stretches.known) >= stretches.most_measured:
            return None if 0 < enough < found.need else replace(found, bound=bound.need)
        stretches.find_out(bound)


def at_most(stretches: Stretches, most_parts: int, most_work: int, most: float = inf) -> Choice | None:
    """As ``choose``, by way of fewer parts, each with ``most_measured`` more: never above the answer for fewer.

    Drafts can be above prices. So the best of fewer stretches is measured first, and stays known.
    """
    best = None
    for count in range(min(2, most_parts), most_parts + 1):
        measured, drafted = count * stretches.most_measured, count * stretches.most_drafted
        within = replace(stretches, most_measured=measured, most_drafted=drafted)
        best = choose(within, count, most_work, gap=0, most=most)
    return best


def fewest(stretches: Stretches, most_parts: int, most_work: int, most: float = inf) -> Choice | None:
    """As few parts as need no more than a fiftieth above the least that ``most_parts`` may need."""
    best = choose(stretches, most_parts, most_work, most=most)
    if best is None:
        return None
    enough = max(best.need, int(best.bound * (1 + _GAP)))  # of the bound: what the search leaves is part of the gap
    for count in range(len(best.stretches) - 1, 0, -1):
        fewer = choose(stretches, count, most_work, enough)
        if fewer is None:
            break  # fewer parts still need no less
        best = fewer
    return best


def best_path(
    options_of: Callable[[Stretch], Options], positions: Sequence[int], most_parts: int, most_work: int
) -> Choice | None:
    """Return the path as in ``choose``, of options that are known for every stretch."""
    every = ((first, end) for at, first in enumerate(positions) for end in positions[at + 1 :])
    options = {stretch: options_of(stretch) for stretch in every}
    needs = sorted({price.need for of_stretch in options.values() for price, _ in of_stretch})

    path = partial(_path, positions, options, most_parts, most_work)
    at = bisect_left(range(len(needs)), True, key=lambda number: path(needs[number]) is not None)
    found = path(needs[at]) if at < len(needs) else None
    if found is None:
        return None
    need = max(price.need for _, price in found.chosen)
    return Choice(tuple(pairwise(found.stops)), tuple(limit for limit, _ in found.chosen), need, found.work, need)


@dataclass(frozen=True)
class _Path:
    work: int
    stops: tuple[int, ...]
    chosen: tuple[tuple[int, Price], ...]


def _path(
    positions: Sequence[int], options: Mapping[Stretch, Options], most_parts: int, most_work: int, need: int
) -> _Path | None:
    """The path of the fewest stretches, with the least work of these, of which none needs more; None without one."""
    edges: dict[int, list[tuple[int, int, Price]]] = {}
    for (first, end), found in options.items():
        fitting = [(price.work, price.need, limit) for price, limit in found if price.need <= need]
        if fitting:
            work, least, limit = min(fitting)
            edges.setdefault(first, []).append((end, limit, Price(least, work)))
    reached = {positions[0]: _Path(0, (positions[0],), ())}
    for _ in range(most_parts):
        further: dict[int, _Path] = {}
        for stop, path in reached.items():
            for end, limit, price in edges.get(stop, ()):
                work = path.work + price.work
                if work <= most_work and (end not in further or work < further[end].work):
                    further[end] = _Path(work, (*path.stops, end), (*path.chosen, (limit, price)))
        if positions[-1] in further:
            return further[positions[-1]]
        reached = further
    return None
