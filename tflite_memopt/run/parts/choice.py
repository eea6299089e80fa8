"""Choose the cuts that make the largest part smallest: a bottleneck path with lazily priced edges.

Steps 0 to n are cut at some of the positions between them. A stretch of steps has a price under each limit on work: the
bytes that it needs, and the work that it adds. The answer is a path from 0 to n of few stretches, whose largest need is
least, and whose work stays within a limit.

    repeat   the best path, by estimates where a price is not known: a bound
             the best path of known prices: the answer, if it is hardly above the bound
             else find out the price of the bound's stretch with the largest estimate

Where estimates are never above the prices, the bound is one (LazySP: Dellin and Srinivasa, "A Unifying Formalism for
Shortest Path Problems with Expensive Edge Evaluations via Lazy Best-First Search over Paths with Edge Selectors", 2016,
section III, with a path's largest edge as the selector).
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
    """The price of a stretch under one limit: ``need`` in bytes, ``work`` in the units of the limit on work.

    ``inner``: the part of the need that every stretch around it has too, under any limits; None for all of the need.
    """

    need: int
    work: int
    inner: int | None = None


@dataclass(frozen=True)
class Choice:
    """``stretches`` in order, for each the number of its limit in ``limits``. ``need``: the largest, in bytes.

    ``bound``: no path needs less, as far as estimates are right.
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
"""Prices of a stretch, each with the number of its limit."""


@dataclass
class Stretches:
    """Known and estimated prices of the stretches between ``positions``, from 0 to the number of steps.

    ``limits``: how many limits on work a stretch has. ``estimate``: bytes that it needs at least, as far as can be told
    at once. ``measure``: its price under each limit, the widest first; None where it has none. ``least_work``: of a
    stretch, under any limit. ``keeps_to``: whether a price is within all limits of a stretch, so that narrower ones
    need not be measured. ``most_measured``: how many stretches may be measured. ``first_is_apart``: the first stretch
    of a path is run in another way, so that the needs of others say nothing about it. ``tail``: the bytes of an
    estimate that grow with every step, whatever is beside them. ``freed``: bytes that a stretch around another one may
    do without, since what crosses the other one's ends need not be there as a whole.
    """

    positions: Sequence[int]
    limits: Callable[[Stretch], int]
    estimate: Callable[[Stretch], int]
    least_work: Callable[[Stretch], int]
    measure: Callable[[Stretch, int], Price | None]
    most_measured: int
    keeps_to: Callable[[Stretch, Price], bool] = lambda *_: False
    first_is_apart: bool = False
    tail: Callable[[Stretch], int] = lambda _: 0
    freed: Callable[[Stretch, Stretch], int] = lambda *_: 0
    known: dict[tuple[Stretch, int], Price | None] = field(default_factory=dict)
    _least: dict[Stretch, dict[int, Price]] = field(default_factory=dict)

    def options(self, stretch: Stretch) -> Options:
        """Prices, known or estimated, with the number of their limit."""
        found = []
        for limit in range(self.limits(stretch)):
            key = stretch, limit
            price = self.known[key] if key in self.known else self._estimated(stretch)[limit]
            if price is not None:
                found.append((price, limit))
        return found

    def known_options(self, stretch: Stretch) -> Options:
        """Known prices, with the number of their limit."""
        prices = ((self.known.get((stretch, limit)), limit) for limit in range(self.limits(stretch)))
        return [(price, limit) for price, limit in prices if price is not None]

    def find_out(self, stretch: Stretch, limit: int) -> None:
        """Measure a stretch under a limit. A longer one needs no less, but for what is freed, and adds no less work.

        Nor does this one, or a longer one, need less under a narrower limit.
        """
        price = self.measure(stretch, limit)
        self.known[stretch, limit] = price
        if price is None:
            return
        if limit == 0 and self.keeps_to(stretch, price):
            self.known |= {(stretch, each): price for each in range(1, self.limits(stretch))}
        first, end = stretch
        inner = (price.need if price.inner is None else price.inner) - self.tail(stretch)
        added = price.work - self.least_work(stretch)
        for other, prices in self._least.items():
            if other[0] <= first and end <= other[1] and (other[0] or not self.first_is_apart):
                need, work = inner - self.freed(stretch, other) + self.tail(other), added + self.least_work(other)
                for at in prices if limit == 0 else {limit} & prices.keys():
                    least = prices[at]
                    prices[at] = Price(max(least.need, need), max(least.work, work) if at == limit else least.work)

    def _estimated(self, stretch: Stretch) -> dict[int, Price]:
        if stretch not in self._least:
            least = Price(self.estimate(stretch), self.least_work(stretch))
            self._least[stretch] = dict.fromkeys(range(self.limits(stretch)), least)
        return self._least[stretch]


def choose(
    stretches: Stretches, most_parts: int, most_work: int, enough: int = 0, gap: float = _GAP, most: float = inf
) -> Choice | None:
    """The path of at most ``most_parts`` stretches whose largest need is least, with the fewest parts and least work.

    One is good enough if no path needs less by more than ``gap``; with ``enough``, if it needs no more bytes. The
    limit on measured stretches ends the search only once a path is known. None where no path keeps to ``most_work``, or
    needs ``most`` bytes at most; with ``enough``, also where every path needs more than that.
    """
    while True:
        bound = best_path(stretches.options, stretches.positions, most_parts, most_work)
        if bound is None or 0 < enough < bound.need or bound.need > most:
            return None
        found = best_path(stretches.known_options, stretches.positions, most_parts, most_work)
        if found is not None and found.need <= (enough or bound.need * (1 + gap)):
            return replace(found, bound=bound.need)
        if found is not None and len(stretches.known) >= stretches.most_measured:
            return None if 0 < enough < found.need else replace(found, bound=bound.need)
        pairs = zip(bound.stretches, bound.limits, strict=True)
        unknown = [pair for pair in pairs if pair not in stretches.known]
        stretches.find_out(*max(unknown, key=lambda pair: stretches.options(pair[0])[0][0].need))


def at_most(stretches: Stretches, most_parts: int, most_work: int, most: float = inf) -> Choice | None:
    """As ``choose``, by way of fewer parts, each with ``most_measured`` more: never above the answer for fewer.

    Estimates can be above prices. So the best of fewer stretches is measured first, and stays known.
    """
    best = None
    for count in range(min(2, most_parts), most_parts + 1):
        within = replace(stretches, most_measured=count * stretches.most_measured)
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
