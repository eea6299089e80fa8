"""What every region of a model would need in stripes: the options that a selection is made of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd

import numpy as np

from ..graph.alignment import ARENA_ALIGNMENT
from ..graph.side_by_side import side_by_side
from ..ir.model import Model, Operator, Tensor
from ..kernels.profile import KernelProfile
from ..memory.layout import memory_layout
from ..memory.schedule_problem import schedule_problem
from ..operators.rows import RowByRow
from ..operators.table import row_by_row
from ..schedule.problem import ScheduleProblem
from .arena_terms import arena_terms
from .cut_table import CutTable, Integers, ways_to_cut
from .forecast import Forecast, forecasts
from .known_loops import Counted, Key, KnownLoops
from .least_needs import least_needs
from .loop_options import LoopOptions
from .lower import row_bytes
from .region import start_of_region
from .select import least_heads
from .selection import BaseNeed, Option, SelectionLimits
from .striped_region import LoopMode, Mode, StripedRegion
from .twins import Twins, one_row

COUNTS = (*range(2, 17), 18, 20, 24, 28, 32, 40, 48, 64)
"""Numbers of stripes to look at."""
LONGEST = 32
"""Operators in a region: more than any that has been chosen."""


_MANY = 8
"""With fewer exits and modes to look at it takes longer to divide them among processes than to work them out."""
_Way = tuple[StripedRegion, Option, frozenset[int]]
"""A region, what it needs without its new constants, and those, by numbers that are equal for equal ones."""
_OfMode = tuple[list[_Way], int]
"""What was found with one exit in one mode, and how many ways to cut were worked out for it."""
_OfExit = tuple[list[_OfMode], dict[Key, Counted]]
"""The same in each of some modes, and what has become known of loops, be it in another process."""


@dataclass(frozen=True)
class StripingOptions:
    """``needs[s]``: a lower bound on the head while step s runs as it stands; ``regions[n]``: what option n stands for.

    ``every``: all options that may be worth it, those among them that another one of their interval beats.
    """

    needs: tuple[int, ...]
    options: tuple[Option, ...]
    regions: tuple[StripedRegion, ...]
    every: Mapping[StripedRegion, Option]


@dataclass(frozen=True)
class Aim:
    """What an option is worth looking at for: a head above ``floor`` bytes, an objective ``below`` so many."""

    floor: int
    below: int
    limits: SelectionLimits
    base: BaseNeed

    def most_head(self) -> int:
        """A head of so many bytes is too large, whatever else there is."""
        return self.below - self.base.tail if self.base.counts_tail else self.below

    def has_a_chance(self, option: Option) -> bool:
        """Whether the objective with an option may be below what is to be beaten."""
        return self.base.least(max(option.bound, self.floor), option.tail, option.temporaries) < self.below

    def beside(self, need: int, options: Collection[Option]) -> Aim | None:
        """The aim of what does not cover one step; None where nothing does that has a chance.

        ``need``: bytes of head that the step needs as it stands; ``options``: all that cover it. What is selected holds
        one of them or leaves the step as it is: so its head is no smaller than the least of these, and where the step
        cannot stay as it is, something is paid for it anyway.
        """
        least = min((option.bound for option in options), default=need)
        floor = max(self.floor, min(need, least))
        if self.base.least(need, 0, 0) < self.below:
            return replace(self, floor=floor)
        if not options:
            return None
        tail = self.base.tail + min(option.tail for option in options)
        temporaries = self.base.temporaries + min(option.temporaries for option in options)
        return replace(self, floor=floor, base=replace(self.base, tail=tail, temporaries=temporaries))


def _unless_wrong(operator: Operator, profile: KernelProfile) -> RowByRow | str:
    """How an operator runs row by row; not at all where a library computes wrongly what one row would be."""
    if profile.may_miscompute(one_row(operator)):
        return "a kernel library computes one row of it wrongly"
    return row_by_row(operator)


class OptionFinder:
    """The options of all regions that are intervals of the order and hold a step that needs more than the floor.

    A tensor with a ``pinned`` name stays whole: no region has it inside. ``exits`` and ``starts``: steps at which
    regions may end and start; None: any. ``looked_at`` counts the ways to cut a region that were worked out.
    ``jobs``: processes that work out exits side by side. ``known``: what searches before this one have found of loops.
    """

    def __init__(
        self,
        model: Model,
        profile: KernelProfile,
        aim: Aim,
        pinned: Collection[str] = (),
        exits: Collection[int] | None = None,
        starts: Collection[int] | None = None,
        jobs: int = 1,
        known: KnownLoops | None = None,
    ) -> None:
        self._model, self._pinned, self._jobs = model, pinned, jobs
        self._exits = range(len(model.main.operators)) if exits is None else sorted(exits)
        self._starts = range(len(model.main.operators)) if starts is None else starts
        self._twins, self._terms = Twins(profile), arena_terms(model, profile)
        for tensor in model.main.tensors:
            self._twins.shape_number(tensor.shape[2:])  # numbers of constants are made of it: the same in all processes
        problem = schedule_problem(model.main, memory_layout(model, profile))
        self._needs = least_needs(model, profile)
        self._across = _Across(problem)
        self._ways = [_unless_wrong(operator, profile) for operator in model.main.operators]
        # What no region can hold is there in any selection.
        fixed = [need for need, way in zip(self._needs, self._ways, strict=True) if isinstance(way, str)]
        self._aim = replace(aim, floor=max(aim.floor, *fixed)) if fixed else aim
        self._bits: dict[int, int] = {}
        self.looked_at = 0
        self._loops = LoopOptions(model, profile, aim.limits, KnownLoops() if known is None else known)
        self._found: dict[Mode | LoopMode, dict[StripedRegion, Option]] = {}
        self._hot = max(range(len(self._needs)), key=self._needs.__getitem__, default=0)
        self._begun: dict[tuple[Mode | LoopMode, ...], list[int]] = {}
        """Modes of which only the options around the step that needs most are found, and the exits of these."""

    def options(self, modes: Sequence[Mode | LoopMode], known: int = 1 << 62) -> StripingOptions:
        """Those with one of the modes; each mode is worked out once.

        Only those that may need less than the ``known`` bytes of the objective.
        """
        for asked in (*self._begun, tuple(mode for mode in modes if mode not in self._found)):
            self._work_out(asked, known)
        by_interval: dict[tuple[int, int], dict[StripedRegion, Option]] = {}
        for mode in modes:
            for region, option in self._found[mode].items():
                by_interval.setdefault((region.first, region.end), {})[region] = option
        every = {region: option for each in by_interval.values() for region, option in each.items()}
        best = {region: option for each in by_interval.values() for region, option in _undominated(each).items()}
        raised = _raised(self._needs, best)
        return StripingOptions(tuple(self._needs), tuple(raised.values()), tuple(raised), every)

    def least(self, modes: Sequence[Mode | LoopMode], known: int) -> int:
        """A bound on the objective with these modes, by the step that needs most: the ``known`` bytes if none has less.

        To be asked for before their options are.
        """
        aim = self._below(known)
        self._begun[tuple(modes)] = self._around_the_hottest(modes, aim)
        beside = self._beside(modes, aim)
        return known if beside is None else min(known, beside.base.least(beside.floor, 0, 0))

    def _work_out(self, modes: Sequence[Mode | LoopMode], known: int) -> None:
        """Find the options of these modes: first those around the step that needs most.

        Nothing else is looked for where none of them helps; and they say what all others have to go with.
        """
        if not modes:
            return
        aim, begun = self._below(known), self._begun.pop(tuple(modes), None)
        around = self._around_the_hottest(modes, aim) if begun is None else begun
        beside = self._beside(modes, aim)
        if around and beside is not None:
            self._add(modes, beside, [exit_ for exit_ in self._ends(beside) if exit_ not in around])

    def _below(self, known: int) -> Aim:
        return replace(self._aim, below=min(self._aim.below, known))

    def _ends(self, aim: Aim) -> list[int]:
        return [exit_ for exit_ in self._exits if self._may_end_at(exit_, aim)]

    def _around_the_hottest(self, modes: Sequence[Mode | LoopMode], aim: Aim) -> list[int]:
        """Find the options of the exits around the step that needs most; those exits."""
        self._found |= {mode: {} for mode in modes}
        around = [exit_ for exit_ in self._ends(aim) if self._first(exit_) <= self._hot <= exit_]
        self._add(modes, aim, around)
        return around

    def _beside(self, modes: Sequence[Mode | LoopMode], aim: Aim) -> Aim | None:
        """The aim of what does not cover the step that needs most, as far as the options around that are found."""
        covering = (option for option in self._of_modes(modes) if option.covers(self._hot))
        return aim.beside(self._needs[self._hot], [option for option in covering if aim.has_a_chance(option)])

    def _add(self, modes: Sequence[Mode | LoopMode], aim: Aim, exits: Sequence[int]) -> None:
        """Find the options of these exits. What is found of one in one mode does not depend on the others."""
        # Loops, which take longer, come first: so processes that share the rest out are done at the same time.
        kinds: list[list[Mode | LoopMode]] = [[mode for mode in modes if len(mode) == size] for size in (3, 2)]
        asked = [(exit_, kind) for kind in kinds for exit_ in exits if kind]
        every = side_by_side(partial(self._of_exit, aim), asked, self._jobs if len(exits) * len(modes) >= _MANY else 1)
        for (_, kind), (found, loops) in zip(asked, every, strict=True):
            self._loops.known.found.update(loops)
            for mode, (ways, looked_at) in zip(kind, found, strict=True):
                self.looked_at += looked_at
                self._found[mode] |= {region: self._with(option, constants) for region, option, constants in ways}

    def _of_modes(self, modes: Sequence[Mode | LoopMode]) -> Iterator[Option]:
        return (option for mode in modes for option in self._found[mode].values())

    def _may_end_at(self, exit_: int, aim: Aim) -> bool:
        first = self._first(exit_)
        return first <= exit_ and max(self._needs[first : exit_ + 1]) > aim.floor

    def _first(self, exit_: int) -> int:
        return start_of_region(self._model.main, exit_, self._ways, LONGEST, self._pinned)

    def _of_exit(self, aim: Aim, asked: tuple[int, Sequence[Mode | LoopMode]]) -> _OfExit:
        """The regions that end with one step, in each of some modes."""
        (exit_, modes), known = asked, self._loops.known
        first, before = self._first(exit_), len(known.found)
        found = [
            self._looped(first, exit_, mode, aim) if len(mode) == 3 else self._unrolled(first, exit_, mode, aim)
            for mode in modes
        ]
        return found, known.since(before)

    def _looped(self, first: int, exit_: int, mode: LoopMode, aim: Aim) -> _OfMode:
        """The loops that end with one step and start with ``first`` or a later one."""
        found: list[_Way] = []
        before = self._loops.looked_at
        for start in range(exit_, first - 1, -1):
            whole = max(self._needs[start : exit_ + 1])
            if whole > aim.floor:
                across = self._across.nbytes(start, exit_ + 1)
                most = min(whole, aim.most_head())
                for region, option in self._loops.of_interval(start, exit_ + 1, mode, across, most):
                    if aim.has_a_chance(option) and option.operators <= aim.limits.operators:
                        found.append((region, option, frozenset()))
        return found, self._loops.looked_at - before

    def _unrolled(self, first: int, exit_: int, mode: Mode, aim: Aim) -> _OfMode:
        """The regions that end with one step and start with ``first`` or a later one."""
        operators = self._model.main.operators
        image = operators[exit_].outputs[0]
        cuts = ways_to_cut(image.shape[1], COUNTS, ARENA_ALIGNMENT // gcd(ARENA_ALIGNMENT, row_bytes(image)))
        if cuts is None:
            return [], 0
        chosen = operators[first : exit_ + 1]
        ways = [way for way in self._ways[first : exit_ + 1] if isinstance(way, RowByRow)]
        lives_on = _read_later(self._model, exit_ + 1)

        def starts_at(place: int) -> bool:
            start = first + place
            return start in self._starts and max(self._needs[start : exit_ + 1]) > aim.floor

        found: list[_Way] = []
        looked_at = 0
        for each in forecasts(chosen, ways, cuts, mode, self._twins, lives_on, self._goes_on, starts_at):
            looked_at += len(cuts.ways)
            found += self._options(first + each.first, exit_ + 1, cuts, mode, aim, each)
        return found, looked_at

    def _goes_on(self, forecast: Forecast) -> bool:
        """Whether longer regions may still be within the limit: MACs only grow."""
        return bool((forecast.exact & (forecast.macs <= self._aim.limits.macs)).any())

    def _options(
        self, first: int, end: int, cuts: CutTable, mode: Mode, aim: Aim, forecast: Forecast
    ) -> Iterator[_Way]:
        across = self._across.nbytes(first, end)
        whole = max(self._needs[first:end])
        good = forecast.exact & (forecast.bound + across < whole) & (forecast.macs <= aim.limits.macs)
        if whole <= aim.floor or not good.any():
            return
        added = forecast.additions()
        tensors = added.activations + added.tensors
        tail, temporaries = self._terms.more(added.operators, tensors, added.activations, added.requests)
        tail = tail + added.params + added.buffers
        for way in np.flatnonzero(good):
            bound = int(forecast.bound[way]) + across
            least = aim.base.least(max(bound, aim.floor), int(tail[way]), int(temporaries[way]))
            if least >= aim.below or added.operators[way] > aim.limits.operators or added.work[way] > aim.limits.work:
                continue
            yield (
                StripedRegion(first, end, cuts.ways[way], *mode),
                Option(
                    first,
                    end,
                    bound,
                    int(tail[way]),
                    int(temporaries[way]),
                    int(added.macs[way]),
                    int(added.operators[way]),
                    work=int(added.work[way]),
                ),
                added.constants_of(int(way)),
            )

    def _with(self, option: Option, constants: Collection[int]) -> Option:
        """The option with its constants as a set of bits, numbered here: processes that find options share no table."""
        if not constants:
            return option
        found = 0
        for each in constants:
            found |= 1 << self._bits.setdefault(each, len(self._bits))
        return replace(option, constants=found)


class _Across:
    """Bytes that are alive during all steps of an interval and that none of them touches."""

    def __init__(self, problem: ScheduleProblem) -> None:
        count, steps = len(problem.sizes), len(problem.steps)
        self._sizes: Integers = np.asarray(problem.sizes, np.int64)
        self._born: Integers = np.full(count, steps, np.int64)
        self._dies: Integers = np.full(count, -1, np.int64)
        self._born[list(problem.inputs)] = -1
        self._touched = []
        for at, step in enumerate(problem.steps):
            both = list({*step.inputs, *step.outputs})
            self._born[list(step.outputs)] = at
            self._dies[both] = at
            self._touched.append(both)
        self._dies[list(problem.outputs)] = steps

    def nbytes(self, first: int, end: int) -> int:
        """Of steps ``first`` to ``end``, half-open."""
        alive = (self._born < first) & (self._dies >= end)
        alive[[atom for touched in self._touched[first:end] for atom in touched]] = False
        return int(self._sizes[alive].sum())


def _read_later(model: Model, end: int) -> set[Tensor]:
    later = {tensor for operator in model.main.operators[end:] for tensor in operator.present_inputs()}
    return later | set(model.main.outputs)


def _undominated(options: dict[StripedRegion, Option]) -> dict[StripedRegion, Option]:
    """Of one interval: without those that another one equals or beats in everything."""
    kept: dict[StripedRegion, Option] = {}
    for region, option in sorted(options.items(), key=lambda pair: (_price(pair[1]), pair[0])):
        if not any(_beats(other, option) for other in kept.values()):
            kept[region] = option
    return kept


def _price(option: Option) -> tuple[int, ...]:
    constants = 12 * option.constants.bit_count()
    return option.bound, option.tail + constants, option.macs, option.operators, option.work


def _beats(one: Option, other: Option) -> bool:
    if one.bound > other.bound or one.macs > other.macs or one.operators > other.operators or one.work > other.work:
        return False
    alone = (one.constants & ~other.constants).bit_count()
    return one.tail + 12 * alone <= other.tail and one.temporaries + 24 * alone <= other.temporaries


def _raised(needs: Sequence[int], options: dict[StripedRegion, Option]) -> dict[StripedRegion, Option]:
    """With no bound below what every selection has: more options are beaten then."""
    least = least_heads(needs, list(options.values()))[0]
    by_interval: dict[tuple[int, int], dict[StripedRegion, Option]] = {}
    for region, option in options.items():
        same = by_interval.setdefault((region.first, region.end), {})
        raised = max(option.bound, least)
        same[region] = option if raised == option.bound else _with_bound(option, raised)
    return {region: option for each in by_interval.values() for region, option in _undominated(each).items()}


def _with_bound(option: Option, bound: int) -> Option:
    return replace(option, bound=bound)
