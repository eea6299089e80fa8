"""The tilings of one model in one order, each with a lower bound or, once it is measured, with its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd

import numpy as np

from ...model.analysis.lifetimes import io_lower_bound
from ...model.ir.model import Model
from ...options import SearchOptions
from ...solvers.graph.alignment import ARENA_ALIGNMENT
from ...solvers.graph.side_by_side import side_by_side
from ...target.kernels.profile import KernelProfile
from ...target.kernels.since import LOOPS, has_operators
from ...target.operators.rows import RowMap
from ...target.operators.table import kind_of, row_map_of
from ..memory.figures import arena_terms
from ..memory.problems import Alive
from ..memory.work import model_work
from .bound import Costs, StripeBounder, loop_bounds
from .loop import phase_regions
from .loop_rows import Masked
from .lower import row_bytes
from .measure import CONSTANT, Measure, Measured
from .region import region_of, start_of_region
from .select import Base, Figures, Limits, Option, OptionSet, Problem, choices, least_heads
from .stripes import Demand, Edges, Halo, ways_to_cut
from .tiling import NAME_OF, ClampedLoop, Form, MaskedLoop, PhaseLoop, RowLoop, Tiling, Tilings, Unrolled, loop_rows_for

COUNTS = (*range(2, 17), 18, 20, 24, 28, 32, 40, 48, 64)
"""Numbers of stripes to look at."""
ROWS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Rows that an iteration of a loop makes."""
LONGEST = 32
"""Operators of a region. Longer ones are looked at as a whole, as causal sequences alone."""
_WITH_LONGEST = 250
"""Operators of a model up to which regions may be so long. The search takes the square of the length an operator."""
UNROLLED: tuple[tuple[Halo, Edges], ...] = (
    ("recompute", "trim"),
    ("recompute", "pad"),
    ("rolling", "trim"),
    ("rolling", "pad"),
)
LOOPS_BY_HALO: Mapping[Halo, type[RowLoop]] = {"recompute": ClampedLoop, "rolling": MaskedLoop}
Forms = tuple[type[Form], ...]
_HANDED_OUT = 0.9
"""The part of the limit on run time that is handed out: the estimate of single models was off by up to 0.6 %."""
_CHOSEN = 14
"""Number of tilings that are compared in the time that measuring one operator takes."""
_MANY = 24
"""With fewer tilings to measure, processes take longer than they save."""


@dataclass(frozen=True)
class Modes:
    """The modes of tilings: halos, edges of stripes, loops."""

    unrolled: tuple[tuple[Halo, Edges], ...]
    loops: tuple[type[RowLoop], ...]
    phases: bool


def modes_of(options: SearchOptions) -> Modes:
    """Return those that the options and the firmware's TFLM allow."""
    if not (options.loops and has_operators(LOOPS, options.build)):
        return Modes(UNROLLED, (), False)
    return Modes(UNROLLED, tuple(LOOPS_BY_HALO.values()), phases=True)


@dataclass
class _Bounded:
    """The needs of a tiling: a bound, or a measure."""

    figures: Figures
    is_measured: bool = False


class Space:
    """``looked_at`` counts the tilings that have a bound, ``effort`` the operators that were measured.

    The model stays as it is. ``measured``: known measurements, from any model.
    """

    def __init__(
        self,
        model: Model,
        profile: KernelProfile,
        options: SearchOptions,
        measured: Measured,
        modes: Modes,
    ) -> None:
        self.model, self.looked_at, self.effort = model, 0, 0
        self._profile, self._modes, self._jobs = profile, modes, options.jobs
        self._measure = Measure(model, profile, measured)
        self._terms, self._costs = arena_terms(model, profile), Costs(profile)
        self._alive = Alive(model, profile)
        self.needs = self._alive.needs()
        self._longest = max(2, min(LONGEST, LONGEST * _WITH_LONGEST // len(self.needs)))
        self._by_need = sorted(range(len(self.needs)), key=self.needs.__getitem__, reverse=True)
        self._row_maps = [row_map_of(operator) for operator in model.main.operators]
        # Steps outside all regions are part of every set.
        fixed = [need for need, row_map in zip(self.needs, self._row_maps, strict=True) if isinstance(row_map, str)]
        self._floor = max(io_lower_bound(model), *fixed) if fixed else io_lower_bound(model)
        operators = len(self.needs) * 1000
        work = int(model_work(model, profile.prices) * options.max_slowdown * _HANDED_OUT)
        self.limits = Limits(int(self._terms.macs * options.max_extra_macs), operators, work)
        constant = tuple(size.on(profile.abi) for size in CONSTANT)
        self.base = Base(
            self._terms.least_tail,
            self._terms.least_temporaries,
            self._terms.interface,
            (constant[0], constant[1]),
            options.objective == "total",
        )
        self._by_interval: dict[tuple[int, int], dict[Tiling, _Bounded]] = {}
        self._kept: dict[tuple[int, int], tuple[int, Forms, list[tuple[Tiling, Option]]]] = {}
        self._lowest: dict[tuple[int, int], dict[Forms, int]] = {}
        self._chosen: dict[tuple[int, Forms, bool], list[tuple[Tilings, OptionSet]]] = {}

    def fill(self, below: int) -> None:
        """Find the tilings with which the objective may be less than ``below`` bytes."""
        if self._least_by_rows() < below:
            self._fill_by_rows(below)
        if self._modes.phases:
            for first, end, phases in phase_regions(self.model.main):
                self._add_phases(Tiling(first, end, PhaseLoop(phases)), below)

    def _fill_by_rows(self, below: int) -> None:
        for exit_ in range(len(self.needs)):
            self._fill_above(exit_, below)
        if MaskedLoop in self._modes.loops:
            for first, end in self._long_regions():
                self._add_loop(first, end, MaskedLoop, below, is_causal=True)

    def _least_by_rows(self) -> int:
        """Return a bound on the objective of every set of tilings by rows, from TFLM's structures alone.

        A tiling adds an operator at least. It may leave PADs out, and requests may be less for some rows than for all.
        """
        by_rows = zip(self.model.main.operators, self._row_maps, strict=True)
        operators = [operator for operator, rows in by_rows if not isinstance(rows, str)]
        pads = sum(kind_of(operator).is_pad for operator in operators)
        tail, temporaries = self._terms.more(1 - pads, 1 - pads, 1 - pads, 0)
        for operator, cost in zip(operators, map(self._costs.of, operators), strict=True):
            tail -= cost.whole_tail if kind_of(operator).is_pad else max(0, cost.whole_tail - cost.tail)
        return self.base.least(Figures(self._floor, tail, temporaries, 0, 0, 0))

    def _fill_above(self, exit_: int, below: int) -> None:
        """Find the tilings of the regions that end with this step."""
        first = start_of_region(self.model.main, exit_, self._row_maps, self._longest)
        if first > exit_ or max(self.needs[first : exit_ + 1]) <= self._floor:
            return
        for mode in self._modes.unrolled:
            self._add_unrolled(first, exit_, *mode, below)
        for start in range(first, exit_ + 1):
            if max(self.needs[start : exit_ + 1]) > self._floor:
                for kind in self._modes.loops:
                    self._add_loop(start, exit_ + 1, kind, below)

    @property
    def families(self) -> tuple[Forms, ...]:
        """Forms to look at together, so that sets differ: unrolled stripes alone, loops alone, then all."""
        has_loops = bool(self._modes.loops) or self._modes.phases
        loops = tuple(form for form in NAME_OF if form is not Unrolled)
        return ((Unrolled,), loops, tuple(NAME_OF)) if has_loops else ((Unrolled,),)

    def choices(self, below: int, forms: Forms, by_work: bool = False) -> list[tuple[Tilings, OptionSet]]:
        """Sets of tilings in these forms whose bound on the objective is less than ``below``, the smallest first."""
        asked = below, forms, by_work
        if asked not in self._chosen:
            self._chosen = {asked: self._choices(*asked)}
        return list(self._chosen[asked])

    def _choices(self, below: int, forms: Forms, by_work: bool) -> list[tuple[Tilings, OptionSet]]:
        least = self._least_head(forms)
        every = [each for interval in self._by_interval for each in self._undominated(*interval, least, forms)]
        self.effort += len(every) // _CHOSEN
        options = [option for _, option in every]
        found = choices(Problem(self.needs, options, self.limits, self.base, below, by_work))
        return [(tuple(every[number][0] for number in each.options), each) for each in found]

    def least(self, forms: Forms) -> int:
        """Return the bytes that nothing in this order and these forms goes below, by the heads of all tilings alone."""
        return self.base.least(Figures(self._least_head(forms), 0, 0, 0, 0, 0))

    def _least_head(self, forms: Forms) -> int:
        heads = {interval: self._lowest_head(*interval, forms) for interval in self._by_interval}
        options = [Option(*interval, Figures(head, 0, 0, 0, 0, 0)) for interval, head in heads.items()]
        return least_heads(self.needs, options)[0]

    def _lowest_head(self, first: int, end: int, forms: Forms) -> int:
        """Of the tilings of one interval."""
        known = self._lowest.setdefault((first, end), {})
        if forms not in known:
            every = self._by_interval[first, end].items()
            known[forms] = min((c.figures.head for t, c in every if isinstance(t.form, forms)), default=max(self.needs))
        return known[forms]

    def _has_changed(self, first: int, end: int) -> None:
        """Forget figures computed from the tilings of an interval."""
        self._chosen.clear()
        for known in (self._kept, self._lowest):
            known.pop((first, end), None)

    def near(self, chosen: Tilings, below: int) -> list[Tilings]:
        """One tiling in another form, or begun or ended a step earlier or later; the smallest bound first."""
        found: list[tuple[int, Tilings]] = []
        known = {self._kind(tiling) for tiling in chosen}
        for at, tiling in enumerate(chosen):
            alike = set(known)
            rest = (*chosen[:at], *chosen[at + 1 :])
            for (first, end), interval in self._by_interval.items():
                if abs(first - tiling.first) > 1 or abs(end - tiling.end) > 1:
                    continue
                if any(first < other.end and other.first < end for other in rest):
                    continue
                for other in sorted(interval, key=lambda each: (not interval[each].is_measured, each)):
                    changed = tuple(sorted((*rest, other)))
                    figures = self._together(changed)
                    least = self.base.least(figures)
                    if self._kind(other) not in alike and least < below and self.limits.allow(figures):
                        alike.add(self._kind(other))
                        found.append((least, changed))
        return [changed for _, changed in sorted(found)]

    def _kind(self, tiling: Tiling) -> tuple[object, ...]:
        """Return the same for tilings that come to the same, such as those of a region without a halo."""
        ends = tiling.form.ends if isinstance(tiling.form, Unrolled) else tiling.form
        return tiling.first, tiling.end, ends, self._by_interval[tiling.first, tiling.end][tiling].figures

    def _together(self, chosen: Tilings) -> Figures:
        """Add up the figures of a set."""
        every = [self._by_interval[each.first, each.end][each].figures for each in chosen]
        covered = {step for each in chosen for step in range(each.first, each.end)}
        bare = next((self.needs[step] for step in self._by_need if step not in covered), 0)
        return reduce(Figures.beside, every, Figures(bare, 0, 0, 0, 0, 0))

    def _undominated(self, first: int, end: int, least: int, forms: Forms) -> list[tuple[Tiling, Option]]:
        """Of one interval: without those that another one equals or beats in everything. Measured ones come first.

        No head counts that is below what every set has: ``least``.
        """
        known = self._kept.get((first, end))
        if known is not None and known[:2] == (least, forms):
            return known[2]
        raised = [
            (candidate.figures._replace(head=max(least, candidate.figures.head)), not candidate.is_measured, tiling)
            for tiling, candidate in self._by_interval[first, end].items()
            if isinstance(tiling.form, forms)
        ]
        raised.sort()
        kept: list[tuple[Tiling, Option]] = []
        for figures, _, tiling in raised:
            if not any(other.figures.beats(figures) for _, other in kept):
                kept.append((tiling, Option(first, end, figures)))
        self._kept[first, end] = least, forms, kept
        return kept

    def is_measured(self, chosen: Sequence[Tiling]) -> bool:
        """Tell whether the figures of all of these are no bounds any more."""
        return all(self._by_interval[tiling.first, tiling.end][tiling].is_measured for tiling in chosen)

    def keep_measured(self) -> None:
        """Drop the tilings that have a bound alone."""
        for interval, known in self._by_interval.items():
            self._by_interval[interval] = {tiling: each for tiling, each in known.items() if each.is_measured}
            self._has_changed(*interval)

    def measure(self, tilings: Sequence[Tiling]) -> None:
        """Measure these; drop tilings that cannot be written or exceed the limits."""
        new = [tiling for tiling in dict.fromkeys(tilings) if not self.is_measured([tiling])]
        unknown = [tiling for tiling in new if not self._measure.is_known(tiling)]
        jobs = self._jobs if len(unknown) >= _MANY else 1
        for tiling, figures in zip(unknown, side_by_side(self._measure, unknown, jobs), strict=True):
            self._measure.add(tiling, figures)
            self.effort += tiling.end - tiling.first + (0 if figures is None else figures.operators)
        for tiling in new:
            self._take(tiling, self._measure(tiling))

    def _take(self, tiling: Tiling, figures: Figures | None) -> None:
        interval = self._by_interval[tiling.first, tiling.end]
        candidate = interval.pop(tiling)
        self._has_changed(tiling.first, tiling.end)
        if figures is None:
            return
        across = self._alive.across(tiling.first, tiling.end)
        # Two bounds of the same: where many views overlap, the one of stripes is the higher one.
        figures = figures._replace(head=max(figures.head + across, candidate.figures.head))
        if self.limits.allow(figures) and figures.head < max(self.needs[tiling.first : tiling.end]):
            interval[tiling] = _Bounded(figures, is_measured=True)

    def _add(self, tiling: Tiling, figures: Figures, below: int) -> None:
        """Unless its bound ``figures`` says that it is no use."""
        whole = max(self.needs[tiling.first : tiling.end])
        if figures.head >= whole or not self.limits.allow(figures):
            return
        if self.base.least(figures._replace(head=max(figures.head, self._floor))) < below:
            self._by_interval.setdefault((tiling.first, tiling.end), {})[tiling] = _Bounded(figures)
            self._has_changed(tiling.first, tiling.end)

    def _add_unrolled(self, first: int, exit_: int, halo: Halo, edges: Edges, below: int) -> None:
        operators, image = self.model.main.operators, self.model.main.operators[exit_].outputs[0]
        cuts = ways_to_cut(image.shape[1], COUNTS, ARENA_ALIGNMENT // gcd(ARENA_ALIGNMENT, row_bytes(image)))
        if cuts is None:
            return
        demand = Demand(cuts, halo, edges)
        bounder = StripeBounder(cuts, demand, self._costs, self._measure.read_later(exit_ + 1), exit_ + 1 - first)
        for step in range(exit_, first - 1, -1):
            row_map = self._row_maps[step]
            assert isinstance(row_map, RowMap)
            bounder.add(demand.add(operators[step], row_map))
            if not demand.possible.any():
                return
            if row_map.passes_on:
                continue
            whole, across = max(self.needs[step : exit_ + 1]), self._alive.across(step, exit_ + 1)
            if whole <= self._floor:
                continue
            self.looked_at += len(cuts.ways)
            possible, figures = bounder.bounds(self._terms)
            for number in np.flatnonzero(possible & (figures[:, 0] + across < whole) & self.limits.allow_each(figures)):
                head, *others = figures[number].tolist()
                tiling = Tiling(step, exit_ + 1, Unrolled(cuts.ways[number], halo, edges))
                self._add(tiling, Figures(head + across, *others), below)

    def _add_loop(self, first: int, end: int, kind: type[RowLoop], below: int, is_causal: bool = False) -> None:
        height = self.model.main.operators[end - 1].outputs[0].shape[1]
        numbers = [rows for rows in range(1, height) if height % rows == 0] if is_causal else ROWS
        forms = tuple(kind(rows) for rows in numbers if rows < height)
        # Causal regions are longer than all others (LONGEST): bounds of one kind are never taken for the other's.
        bounds = self._measure.bounds(first, end, forms, lambda: self._loop_bounds(first, end, forms, is_causal))
        self.looked_at += len(bounds)
        across = self._alive.across(first, end)
        for form, figures in bounds.items():
            self._add(Tiling(first, end, form), figures._replace(head=figures.head + across), below)

    def _loop_bounds(self, first: int, end: int, forms: Sequence[RowLoop], is_causal: bool) -> dict[Form, Figures]:
        """Return the bounds of those loops that can be written; empty where the steps are not a region."""
        region, found = region_of(self.model.main, self.model.main.operators[first:end]), dict[Form, Figures]()
        if isinstance(region, str):
            return found
        for form in forms:
            loop = loop_rows_for(region, form)
            if isinstance(loop, str) or (is_causal and isinstance(loop, Masked) and loop.first_iteration < 0):
                continue
            found[form] = loop_bounds(region, loop, self._costs, self._terms, self._measure.read_later(end))
        return found

    def _add_phases(self, tiling: Tiling, below: int) -> None:
        exit_ = self.model.main.operators[tiling.end - 1].outputs[0]
        head = exit_.nbytes + self._alive.across(tiling.first, tiling.end)
        self.looked_at += 1
        self._add(tiling, Figures(head, 0, 0, 0, 0, 0), below)

    def _long_regions(self) -> Iterator[tuple[int, int]]:
        """Steps ``first`` to ``end``, half-open, of regions longer than others may be, none inside another one."""
        count = len(self._row_maps)
        least = count
        for exit_ in reversed(range(count)):
            first = start_of_region(self.model.main, exit_, self._row_maps, count)
            if first < least and exit_ + 1 - first > LONGEST:
                least = first
                yield first, exit_ + 1
