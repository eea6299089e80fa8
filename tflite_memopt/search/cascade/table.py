"""The tilings of one model in one order, by region, with what is known of each; and the sets of them to plan.

A tiling has a bound on its figures until it is measured. Those that cannot be of use are not kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce

from .select import Base, Figures, Limits, Option, OptionSet, Problem, choices, least_heads
from .tiling import Form, Tiling, Tilings, Unrolled

Forms = tuple[type[Form], ...]
_CHOSEN = 14
"""Number of tilings that are compared in the time that measuring one operator takes."""


@dataclass(frozen=True)
class OrderNeeds:
    """What a set of tilings is up against. ``of_steps[s]``: bytes of the head while step s runs as it is.

    ``floor``: bytes of the head with every set.
    """

    of_steps: Sequence[int]
    floor: int
    limits: Limits
    base: Base

    def whole(self, first: int, end: int) -> int:
        """Return the bytes of the head that steps ``first`` to ``end``, half-open, need as they are."""
        return max(self.of_steps[first:end])


@dataclass(frozen=True)
class Known:
    """The needs of a tiling beside all that lies across it: a bound, or a measurement."""

    figures: Figures
    is_measured: bool = False


class RegionTilings:
    """The tilings of steps ``first`` to ``end``, half-open.

    Both caches depend on these tilings alone: they are emptied where one comes or goes.
    """

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end
        self.known: dict[Tiling, Known] = {}
        self._lowest: dict[Forms, int] = {}
        self._undominated: tuple[int, Forms, list[tuple[Tiling, Option]]] | None = None

    def put(self, tiling: Tiling, known: Known) -> None:
        """Add a tiling."""
        self.known[tiling] = known
        self._forget()

    def take(self, tiling: Tiling) -> Known:
        """Remove a tiling, and return what was known of it."""
        self._forget()
        return self.known.pop(tiling)

    def keep_measured(self) -> None:
        """Remove the tilings that have a bound alone."""
        self.known = {tiling: known for tiling, known in self.known.items() if known.is_measured}
        self._forget()

    def _forget(self) -> None:
        self._lowest.clear()
        self._undominated = None

    def lowest_head(self, forms: Forms) -> int | None:
        """Return the smallest head of these forms; None where no tiling has one of them."""
        if forms not in self._lowest:
            heads = [known.figures.head for tiling, known in self.known.items() if isinstance(tiling.form, forms)]
            if not heads:
                return None
            self._lowest[forms] = min(heads)
        return self._lowest[forms]

    def undominated(self, least: int, forms: Forms) -> list[tuple[Tiling, Option]]:
        """Of these forms: without tilings that another one equals or beats in everything. Measured ones come first.

        No head counts that is below what every set has: ``least``.
        """
        if self._undominated is not None and self._undominated[:2] == (least, forms):
            return self._undominated[2]
        raised = [
            (known.figures._replace(head=max(least, known.figures.head)), not known.is_measured, tiling)
            for tiling, known in self.known.items()
            if isinstance(tiling.form, forms)
        ]
        raised.sort()
        kept: list[tuple[Tiling, Option]] = []
        for figures, _, tiling in raised:
            if not any(other.figures.beats(figures) for _, other in kept):
                kept.append((tiling, Option(self.first, self.end, figures)))
        self._undominated = least, forms, kept
        return kept


class TilingTable:
    """The tilings of a model in one order that may be of use. ``changes``: how often one has come or gone."""

    def __init__(self, needs: OrderNeeds) -> None:
        self.needs, self.changes = needs, 0
        self._regions: dict[tuple[int, int], RegionTilings] = {}

    @property
    def regions(self) -> Collection[RegionTilings]:
        """All that have or had a tiling, in the order in which they were found."""
        return self._regions.values()

    def __getitem__(self, tiling: Tiling) -> Known:
        """Return what is known of a tiling of this table."""
        return self._regions[tiling.first, tiling.end].known[tiling]

    def add(self, tiling: Tiling, bound: Figures, below: int) -> None:
        """Unless its bound says that no set with it has an objective of less than ``below`` bytes."""
        if not self._is_of_use(tiling, bound):
            return
        needs = self.needs
        if needs.base.least(bound._replace(head=max(bound.head, needs.floor))) < below:
            region = self._regions.setdefault((tiling.first, tiling.end), RegionTilings(tiling.first, tiling.end))
            region.put(tiling, Known(bound))
            self.changes += 1

    def settle(self, tiling: Tiling, measured: Figures | None) -> None:
        """Replace a bound by what was measured; None: the tiling cannot be written. Drop it if it is of no use."""
        region = self._regions[tiling.first, tiling.end]
        bound = region.take(tiling).figures
        self.changes += 1
        if measured is None:
            return
        # Two bounds of the same: where many views overlap, the one of stripes is the higher one.
        figures = measured._replace(head=max(measured.head, bound.head))
        if self._is_of_use(tiling, figures):
            region.put(tiling, Known(figures, is_measured=True))

    def _is_of_use(self, tiling: Tiling, figures: Figures) -> bool:
        return figures.head < self.needs.whole(tiling.first, tiling.end) and self.needs.limits.allow(figures)

    def is_measured(self, chosen: Sequence[Tiling]) -> bool:
        """Tell whether all of these tilings are measured."""
        return all(self[tiling].is_measured for tiling in chosen)

    def keep_measured(self) -> None:
        """Drop the tilings that have a bound alone."""
        for region in self.regions:
            region.keep_measured()
        self.changes += 1

    def least_head(self, forms: Forms) -> int:
        """Return the bytes of the head that no set in these forms goes below."""
        options = []
        for region in self.regions:
            head = region.lowest_head(forms)
            if head is not None:
                options.append(Option(region.first, region.end, Figures(head, 0, 0, 0, 0, 0)))
        return least_heads(self.needs.of_steps, options)[0]

    def undominated(self, forms: Forms) -> list[tuple[Tiling, Option]]:
        """The tilings in these forms that no other one of their region equals or beats in everything."""
        least = self.least_head(forms)
        return [each for region in self.regions for each in region.undominated(least, forms)]


class TilingSets:
    """The sets of a table's tilings whose objective may be small.

    ``effort``: the operators that could have been measured in the time that choosing took.
    The cache holds the last answer. It depends on the question and on the tilings in the table (``changes``).
    """

    def __init__(self, table: TilingTable) -> None:
        self._table, self.effort = table, 0
        of_steps = table.needs.of_steps
        self._by_need = sorted(range(len(of_steps)), key=of_steps.__getitem__, reverse=True)
        self._asked: tuple[int, int, Forms, bool] | None = None
        self._found: list[tuple[Tilings, OptionSet]] = []

    def least(self, forms: Forms) -> int:
        """Return the bytes that nothing in this order and these forms goes below, by the heads of all tilings alone."""
        return self._table.needs.base.least(Figures(self._table.least_head(forms), 0, 0, 0, 0, 0))

    def choices(self, below: int, forms: Forms, by_work: bool = False) -> list[tuple[Tilings, OptionSet]]:
        """Sets of tilings in these forms whose bound on the objective is less than ``below``, the smallest first."""
        asked = self._table.changes, below, forms, by_work
        if asked != self._asked:
            self._asked, self._found = asked, self._choices(below, forms, by_work)
        return list(self._found)

    def _choices(self, below: int, forms: Forms, by_work: bool) -> list[tuple[Tilings, OptionSet]]:
        every, needs = self._table.undominated(forms), self._table.needs
        self.effort += len(every) // _CHOSEN
        options = [option for _, option in every]
        found = choices(Problem(needs.of_steps, options, needs.limits, needs.base, below, by_work))
        return [(tuple(every[number][0] for number in each.options), each) for each in found]

    def near(self, chosen: Tilings, below: int) -> list[Tilings]:
        """One tiling in another form, or begun or ended a step earlier or later; the smallest bound first."""
        found: list[tuple[int, Tilings]] = []
        known, needs = {self._kind(tiling) for tiling in chosen}, self._table.needs
        for at, tiling in enumerate(chosen):
            alike = set(known)
            rest = (*chosen[:at], *chosen[at + 1 :])
            for region in self._table.regions:
                if abs(region.first - tiling.first) > 1 or abs(region.end - tiling.end) > 1:
                    continue
                if any(region.first < other.end and other.first < region.end for other in rest):
                    continue
                beside = self._together(rest, region)
                for other in sorted(region.known, key=lambda each: (not self._table[each].is_measured, each)):
                    figures = beside.beside(self._table[other].figures)
                    least = needs.base.least(figures)
                    if least < below and self._kind(other) not in alike and needs.limits.allow(figures):
                        alike.add(self._kind(other))
                        found.append((least, tuple(sorted((*rest, other)))))
        return [changed for _, changed in sorted(found)]

    def _kind(self, tiling: Tiling) -> tuple[object, ...]:
        """Return the same for tilings that come to the same, such as those of a region without a halo."""
        ends = tiling.form.ends if isinstance(tiling.form, Unrolled) else tiling.form
        return tiling.first, tiling.end, ends, self._table[tiling].figures

    def _together(self, chosen: Tilings, region: RegionTilings) -> Figures:
        """Add up the figures of a set, and of the steps that are neither in it nor in the region."""
        covered = {step for each in chosen for step in range(each.first, each.end)}
        covered.update(range(region.first, region.end))
        bare = next((self._table.needs.of_steps[step] for step in self._by_need if step not in covered), 0)
        return reduce(Figures.beside, (self._table[each].figures for each in chosen), Figures(bare, 0, 0, 0, 0, 0))
