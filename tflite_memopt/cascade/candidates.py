"""The selections that a search looks at: by their least need, and those next to one that is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .judge import Chosen
from .predict import StripingOptions
from .select import least_heads, selections
from .selection import BaseNeed, Option, Selection, SelectionLimits, least_need, selection_of
from .striped_region import StripedRegion

_PARTS = (16, 8, 4, 2, 1)
"""Selections are worked out up to a sixteenth of the way from the least possible need to the present one, and on."""
_NEAR = 1
"""Steps by which a region next to another one may start or end elsewhere."""


@dataclass
class _WorkedOut:
    """The selections found so far, and the parts that are still to be worked out; all below ``reached`` bytes are."""

    selections: list[Selection]
    parts: list[int]
    reached: int = 0


class Candidates:
    """Selections for one choice of modes, the smallest least need first; worked out as far as they are asked for."""

    def __init__(self, options: StripingOptions, base: BaseNeed, below: int, counts_run_time: bool) -> None:
        """``counts_run_time``: whether those with fewer MACs or operators are wanted, too, that need more."""
        self.options, self._base, self._below = options, base, below
        self._counts_run_time = counts_run_time
        self._start = min(below, base.least(least_heads(options.needs, options.options)[0], 0, 0))
        self._found: dict[SelectionLimits, _WorkedOut] = {}

    def within(self, limits: SelectionLimits, most: int) -> Iterator[Selection]:
        """Those that keep these limits, as long as their least need is below ``most`` bytes."""
        found = self._found.setdefault(limits, _WorkedOut([], list(_PARTS)))
        at = 0
        while True:
            while at < len(found.selections):
                selection = found.selections[at]
                at += 1
                if self.least(selection) >= most:
                    return
                yield selection
            if not found.parts or found.reached >= most:
                return
            self._work_out(limits, found, most)

    def _work_out(self, limits: SelectionLimits, found: _WorkedOut, most: int) -> None:
        """The next part: those whose least need is a step further from the smallest that may be."""
        before = found.reached
        found.reached = self._start - (self._start - self._below) // found.parts.pop(0)
        if found.parts and most <= self._start - (self._start - self._below) // found.parts[0]:
            found.reached = most
        new = selections(
            self.options.needs, self.options.options, limits, self._base, found.reached, self._counts_run_time
        )
        found.selections += [each for each in new if self.least(each) >= before]

    def smallest(self, limits: SelectionLimits) -> int:
        """The smallest least need of all within the limits, in bytes, that without any region among them.

        Options that leave a step as much as it needs whole are not looked at: they make nothing smaller.
        """
        whole = self._base.least(max(self.options.needs, default=0), 0, 0)
        first = next(self.within(limits, self._below), None)
        return whole if first is None else min(whole, self.least(first))

    def chosen(self, selection: Selection) -> Chosen:
        """The regions that a selection stands for."""
        return tuple(self.options.regions[number] for number in selection.options)

    def least(self, selection: Selection) -> int:
        """The least that the objective can be, in bytes."""
        return least_need(self._base, selection)

    def near(self, chosen: Chosen, limits: SelectionLimits, below: int) -> list[Chosen]:
        """One region left out, changed, moved by a step or added; within the limits, the smallest least need first.

        Only those whose least need is no smaller than that of ``chosen``: where that is too large, all of them are.
        """
        found: dict[Chosen, int] = {}
        alike: set[tuple[object, ...]] = set()
        every = self.options.every
        if any(region not in every for region in chosen):
            return []
        start = self.least(selection_of(self.options.needs, [every[region] for region in chosen]))
        for other in self._changed(chosen):
            ordered = tuple(sorted(other))
            options = [every[region] for region in ordered]
            # Modes that come to the same, such as those of a region without a halo.
            figures = tuple((region.ends, option) for region, option in zip(ordered, options, strict=True))
            if figures in alike:
                continue
            alike.add(figures)
            selection = selection_of(self.options.needs, options)
            if limits.allow(selection):
                least = self.least(selection)
                if start <= least < below:
                    found[ordered] = least
        return sorted(found, key=lambda each: (found[each], each))

    def _changed(self, chosen: Chosen) -> Iterator[Chosen]:
        for at, region in enumerate(chosen):
            rest = chosen[:at] + chosen[at + 1 :]
            yield rest
            for other, option in self.options.every.items():
                if other != region and _is_near(region, other) and _is_apart(option, rest):
                    yield (*rest, other)
        if self._base.counts_tail:
            return
        for other, option in self.options.every.items():
            if _is_apart(option, chosen):
                yield (*chosen, other)


def _is_near(region: StripedRegion, other: StripedRegion) -> bool:
    return abs(region.first - other.first) <= _NEAR and abs(region.end - other.end) <= _NEAR


def _is_apart(option: Option, chosen: Chosen) -> bool:
    return all(option.end <= region.first or region.end <= option.first for region in chosen)
