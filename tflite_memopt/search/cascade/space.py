"""The space that the search of one order goes through: its tilings with their bounds, measurements, and sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from ...kernels.profile import KernelProfile
from ...kernels.since import LOOPS, has_operators
from ...memory.figures import ArenaTerms, arena_terms
from ...memory.problems import Alive
from ...memory.work import model_work
from ...model.analysis.lifetimes import io_lower_bound
from ...model.ir.model import Model
from ...operators.rows import RowMap
from ...operators.table import kind_of, row_map_of
from ...options import SearchOptions
from ...solvers.graph.alignment import ARENA_ALIGNMENT
from ...solvers.graph.side_by_side import side_by_side
from .bound import Costs, StripeBounder, loop_bounds
from .loop import phase_regions
from .loop_rows import Masked
from .lower import row_bytes
from .measure import CONSTANT, Measure, Measured
from .region import region_of, start_of_region
from .select import Base, Figures, Limits
from .stripes import Demand, Edges, Flags, Halo, Integers, ways_to_cut
from .table import Forms, OrderNeeds, TilingSets, TilingTable
from .tiling import NAME_OF, ClampedLoop, Form, MaskedLoop, PhaseLoop, RowLoop, Tiling, Unrolled, loop_rows_for

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
_MANY = 24
"""With fewer tilings to measure, processes take longer than they save."""


@dataclass(frozen=True)
class Modes:
    """The modes of tilings: halos, edges of stripes, loops."""

    unrolled: tuple[tuple[Halo, Edges], ...]
    loops: tuple[type[RowLoop], ...]
    phases: bool

    def families(self, by_work: bool) -> tuple[Forms, ...]:
        """Forms to look at together, so that sets differ: loops alone, then all.

        ``by_work``: by run time, unrolled stripes alone come first, of which many may do.
        """
        loops, unrolled = tuple(form for form in NAME_OF if form is not Unrolled), ((Unrolled,),)
        if not (self.loops or self.phases):
            return unrolled
        return (*(unrolled if by_work else ()), loops, tuple(NAME_OF))


def modes_of(options: SearchOptions) -> Modes:
    """Return those that the options and the firmware's TFLM allow."""
    if not (options.loops and has_operators(LOOPS, options.build)):
        return Modes(UNROLLED, (), False)
    return Modes(UNROLLED, tuple(LOOPS_BY_HALO.values()), phases=True)


class Space:
    """The tilings of a model in its order. The model stays as it is. ``measured``: known measurements, from any model.

    ``bounds`` and ``measurements`` write into ``tilings``; ``sets`` reads them. ``is_cut``: stretches of its steps are
    looked at, which need less than the model does with every set.
    """

    def __init__(
        self,
        model: Model,
        profile: KernelProfile,
        options: SearchOptions,
        measured: Measured,
        modes: Modes,
        is_cut: bool = False,
    ) -> None:
        alive, terms = Alive(model, profile), arena_terms(model, profile)
        measure = Measure(model, profile, measured)
        self.modes = modes
        needs = _order_needs(model, profile, options, alive, terms)
        self.tilings = TilingTable(replace(needs, floor=0) if is_cut else needs)
        self.bounds = TilingBounds(self.tilings, model, modes, Costs(profile), terms, alive, measure)
        self.measurements = Measurements(self.tilings, measure, alive, options.jobs)
        self.sets = TilingSets(self.tilings)

    @property
    def effort(self) -> int:
        """The operators that were measured, and as many more as choosing takes the time of."""
        return self.measurements.effort + self.sets.effort


def _order_needs(
    model: Model, profile: KernelProfile, options: SearchOptions, alive: Alive, terms: ArenaTerms
) -> OrderNeeds:
    needs = alive.needs()
    # Steps outside all regions are part of every set.
    by_step = zip(needs, model.main.operators, strict=True)
    fixed = [need for need, operator in by_step if isinstance(row_map_of(operator), str)]
    work = int(model_work(model, profile.prices) * options.max_slowdown)
    return OrderNeeds(
        needs,
        max(io_lower_bound(model), *fixed) if fixed else io_lower_bound(model),
        Limits(int(terms.macs * options.max_extra_macs), len(needs) * 1000, work),
        base_of(terms, options),
    )


def base_of(terms: ArenaTerms, options: SearchOptions) -> Base:
    """Return the bytes of a model beside its head."""
    tail, temporaries = (size.on(terms.abi) for size in CONSTANT)
    counts_tail = options.objective == "total"
    return Base(terms.least_tail, terms.least_temporaries, terms.interface, (tail, temporaries), counts_tail)


class Measurements:
    """Puts measurements into a table in place of bounds. ``effort``: the operators that were measured."""

    def __init__(self, table: TilingTable, measure: Measure, alive: Alive, jobs: int) -> None:
        self._table, self._measure, self._alive, self._jobs = table, measure, alive, jobs
        self.effort = 0

    def take(self, tilings: Sequence[Tiling]) -> None:
        """Measure these; drop tilings that cannot be written or exceed the limits."""
        new = [tiling for tiling in dict.fromkeys(tilings) if not self._table.is_measured([tiling])]
        unknown = [tiling for tiling in new if not self._measure.is_known(tiling)]
        jobs = self._jobs if len(unknown) >= _MANY else 1
        for tiling, figures in zip(unknown, side_by_side(self._measure, unknown, jobs), strict=True):
            self._measure.add(tiling, figures)
            self.effort += tiling.end - tiling.first + (0 if figures is None else figures.operators)
        for tiling in new:
            figures = self._measure(tiling)
            across = self._alive.across(tiling.first, tiling.end)
            self._table.settle(tiling, None if figures is None else figures._replace(head=figures.head + across))


class TilingBounds:
    """Finds the tilings of a model in its order and computes their bounds. ``looked_at``: how many have one.

    Two caches, both beyond this order: ``costs``, by operator, and the bounds of loops in ``measure``, by region.
    """

    def __init__(
        self,
        table: TilingTable,
        model: Model,
        modes: Modes,
        costs: Costs,
        terms: ArenaTerms,
        alive: Alive,
        measure: Measure,
    ) -> None:
        self._table, self._graph, self._modes, self.looked_at = table, model.main, modes, 0
        self._costs, self._terms, self._alive, self._measure = costs, terms, alive, measure
        self._row_maps = [row_map_of(operator) for operator in model.main.operators]
        self._longest = max(2, min(LONGEST, LONGEST * _WITH_LONGEST // len(self._row_maps)))

    def fill(self, below: int) -> None:
        """Find the tilings with which the objective may be less than ``below`` bytes."""
        if self.least_by_rows() < below:
            self._fill_by_rows(below)
        if self._modes.phases:
            for first, end, phases in phase_regions(self._graph):
                self._add_phases(Tiling(first, end, PhaseLoop(phases)), below)

    def _fill_by_rows(self, below: int) -> None:
        for exit_ in range(len(self._row_maps)):
            self._fill_above(exit_, below)
        if MaskedLoop in self._modes.loops:
            for first, end in self._long_regions():
                height = self._graph.operators[end - 1].outputs[0].shape[1]
                rows = [each for each in range(1, height) if height % each == 0]
                self._add_loops(first, end, (MaskedLoop,), rows, below, is_causal=True)

    def least_by_rows(self) -> int:
        """Return a bound on the objective of every set of tilings by rows, from TFLM's structures alone.

        A tiling adds an operator at least. It may leave PADs out, and requests may be less for some rows than for all.
        """
        by_rows = zip(self._graph.operators, self._row_maps, strict=True)
        operators = [operator for operator, rows in by_rows if not isinstance(rows, str)]
        pads = sum(kind_of(operator).is_pad for operator in operators)
        tail, temporaries = self._terms.more(1 - pads, 1 - pads, 1 - pads, 0)
        for operator, cost in zip(operators, map(self._costs.of, operators), strict=True):
            tail -= cost.whole_tail if kind_of(operator).is_pad else max(0, cost.whole_tail - cost.tail)
        needs = self._table.needs
        return needs.base.least(Figures(needs.floor, tail, temporaries, 0, 0, 0))

    def _fill_above(self, exit_: int, below: int) -> None:
        """Find the tilings of the regions that end with this step."""
        first = start_of_region(self._graph, exit_, self._row_maps, self._longest)
        needs = self._table.needs
        if first > exit_ or needs.whole(first, exit_ + 1) <= needs.floor:
            return
        for mode in self._modes.unrolled:
            self._add_unrolled(first, exit_, *mode, below)
        for start in range(first, exit_ + 1):
            if self._modes.loops and needs.whole(start, exit_ + 1) > needs.floor:
                self._add_loops(start, exit_ + 1, self._modes.loops, ROWS, below)

    def _add_unrolled(self, first: int, exit_: int, halo: Halo, edges: Edges, below: int) -> None:
        image = self._graph.operators[exit_].outputs[0]
        cuts = ways_to_cut(image.shape[1], COUNTS, ARENA_ALIGNMENT // gcd(ARENA_ALIGNMENT, row_bytes(image)))
        if cuts is None:
            return
        needs = self._table.needs
        # A region does not begin with a reshape.
        firsts = [
            step
            for step in range(exit_, first - 1, -1)
            if not self._passes_on(step) and needs.whole(step, exit_ + 1) > needs.floor
        ]
        asked = halo, edges, *(exit_ - step for step in firsts)
        bounds = self._measure.bounds(
            first, exit_ + 1, asked, lambda: self._stripe_bounds(first, exit_, firsts, Demand(cuts, halo, edges))
        )
        for step, (possible, figures) in zip(firsts, bounds, strict=False):
            whole, across = needs.whole(step, exit_ + 1), self._alive.across(step, exit_ + 1)
            self.looked_at += len(cuts.ways)
            is_of_use = possible & (figures[:, 0] + across < whole) & needs.limits.allow_each(figures)
            for number in np.flatnonzero(is_of_use):
                head, *others = figures[number].tolist()
                tiling = Tiling(step, exit_ + 1, Unrolled(cuts.ways[number], halo, edges))
                self._table.add(tiling, Figures(head + across, *others), below)

    def _passes_on(self, step: int) -> bool:
        row_map = self._row_maps[step]
        return isinstance(row_map, RowMap) and row_map.passes_on

    def _stripe_bounds(
        self, first: int, exit_: int, firsts: Collection[int], demand: Demand
    ) -> list[tuple[Flags, Integers]]:
        """Return the bounds of the regions from each of ``firsts``, until no way to cut is possible."""
        lives_on, found = self._measure.read_later(exit_ + 1), list[tuple[Flags, Integers]]()
        bounder = StripeBounder(demand.cuts, demand, self._costs, lives_on, exit_ + 1 - first)
        for step in range(exit_, first - 1, -1):
            row_map = self._row_maps[step]
            assert isinstance(row_map, RowMap)
            bounder.add(demand.add(self._graph.operators[step], row_map))
            if not demand.possible.any():
                break
            if step in firsts:
                found.append(bounder.bounds(self._terms))
        return found

    def _add_loops(
        self,
        first: int,
        end: int,
        kinds: Sequence[type[RowLoop]],
        numbers: Sequence[int],
        below: int,
        is_causal: bool = False,
    ) -> None:
        height = self._graph.operators[end - 1].outputs[0].shape[1]
        forms = tuple(kind(rows) for kind in kinds for rows in numbers if rows < height)
        # Causal regions are longer than all others (LONGEST): bounds of one kind are never taken for the other's.
        bounds = self._measure.bounds(first, end, forms, lambda: self._loop_bounds(first, end, forms, is_causal))
        self.looked_at += len(bounds)
        across = self._alive.across(first, end)
        for form, figures in bounds.items():
            self._table.add(Tiling(first, end, form), figures._replace(head=figures.head + across), below)

    def _loop_bounds(self, first: int, end: int, forms: Sequence[RowLoop], is_causal: bool) -> dict[Form, Figures]:
        """Return the bounds of those loops that can be written; empty where the steps are not a region."""
        region = region_of(self._graph, self._graph.operators[first:end], self._row_maps[first:end])
        found = dict[Form, Figures]()
        if isinstance(region, str):
            return found
        for form in forms:
            loop = loop_rows_for(region, form)
            if isinstance(loop, str) or (is_causal and isinstance(loop, Masked) and loop.first_iteration < 0):
                continue
            found[form] = loop_bounds(region, loop, self._costs, self._terms, self._measure.read_later(end))
        return found

    def _add_phases(self, tiling: Tiling, below: int) -> None:
        exit_ = self._graph.operators[tiling.end - 1].outputs[0]
        head = exit_.nbytes + self._alive.across(tiling.first, tiling.end)
        self.looked_at += 1
        self._table.add(tiling, Figures(head, 0, 0, 0, 0, 0), below)

    def _long_regions(self) -> Iterator[tuple[int, int]]:
        """Steps ``first`` to ``end``, half-open, of regions longer than others may be, none inside another one."""
        count = len(self._row_maps)
        least = count
        for exit_ in reversed(range(count)):
            first = start_of_region(self._graph, exit_, self._row_maps, count)
            if first < least and exit_ + 1 - first > LONGEST:
                least = first
                yield first, exit_ + 1
