"""The choice of regions to tile, as a problem of integers: dynamic programming over the steps of a model.

The steps, in order, each need some bytes, and *options* replace intervals of them. What a set of options needs at
least follows from its largest step or option, and from the sums of what its options pay. At every step those sets stay
that no other one beats in everything, and of these a *beam* of the most promising ones: so the work is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add, le
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
BEAM = 100
"""Sets that stay at a step."""
HEADS = 100
"""Parts of the need to be beaten: heads in the same part are alike."""
_NEVER = 1 << 40
"""More than any tail: impossible with every option."""
_WIDER = 4
"""By this factor more are compared than stay."""
_BLOCK = 128
"""Sets that are compared at once with all that may beat them."""
_HEAD, _TAIL, _TEMPORARIES, _MACS, _OPERATORS, _WORK, _CONSTANTS = range(7)


class Figures(NamedTuple):
    """The needs of a region in some form. ``head``: bytes while it runs, beside what lies across it.

    ``tail`` and ``temporaries`` (bytes), ``macs``, ``operators`` and ``work`` (``memory/work.py``) are added to
    the model's, without ``constants``: so many tensors, which several regions may have in common.
    """

    head: int
    tail: int
    temporaries: int
    macs: int
    operators: int
    work: int
    constants: int = 0

    def beside(self, other: Figures) -> Figures:
        """Combine the needs of both: see ``_together``, which says the same of many."""
        sums = map(add, self[1:-1], other[1:-1])
        return Figures._make((max(self.head, other.head), *sums, max(self.constants, other.constants)))

    def beats(self, other: Figures) -> bool:
        """Tell whether nothing of it is more than the other's."""
        return all(map(le, self, other))


class Option(NamedTuple):
    """Steps ``first`` to ``end``, half-open, in some form."""

    first: int
    end: int
    figures: Figures


@dataclass(frozen=True)
class Limits:
    """The most that a set may add."""

    macs: int
    operators: int
    work: int

    def allow(self, figures: Figures) -> bool:
        """Tell whether all that is added is within them."""
        return figures.macs <= self.macs and figures.operators <= self.operators and figures.work <= self.work

    def allow_each(self, figures: Integers) -> Flags:
        """Return the same of many, a row of ``figures`` each."""
        is_kept = figures[:, [_MACS, _OPERATORS, _WORK]] <= (self.macs, self.operators, self.work)
        found: Flags = np.logical_and.reduce(is_kept, axis=1)
        return found


@dataclass(frozen=True)
class Base:
    """The bytes of a model beside its head. ``interface``: the part of the tail that comes after the planner.

    ``constant``: tail and temporaries of one. ``counts_tail``: whether the objective is the whole arena, and not the
    head alone.
    """

    tail: int
    temporaries: int
    interface: int
    constant: tuple[int, int]
    counts_tail: bool = True

    def least(self, figures: Figures) -> int:
        """Return a lower bound on the objective for the totals of a set."""
        if not self.counts_tail:
            return figures.head
        tail, temporaries = (each * figures.constants for each in self.constant)
        hidden = self.temporaries + figures.temporaries + temporaries - self.interface
        return self.tail + figures.tail + tail + max(figures.head, hidden)

    def least_of_each(self, head: Integers, figures: Integers) -> Integers:
        """Return the same for many sets, a row of ``figures`` each."""
        if not self.counts_tail:
            return head
        tail, temporaries = (each * figures[:, _CONSTANTS] for each in self.constant)
        hidden = self.temporaries - self.interface + figures[:, _TEMPORARIES] + temporaries
        found: Integers = self.tail + figures[:, _TAIL] + tail + np.maximum(head, hidden)
        return found


@dataclass(frozen=True)
class OptionSet:
    """A set of options by their numbers, in order, with its totals; ``least``: bytes of the objective."""

    options: tuple[int, ...]
    least: int
    figures: Figures


@dataclass(frozen=True)
class Problem:
    """``needs[s]``: a lower bound on the head while step s runs as it is. ``below``: bytes of the objective.

    ``by_work``: whether sets count that need more and take less time. ``making``: work that an added operator takes
    beside its own.
    """

    needs: Sequence[int]
    options: Sequence[Option]
    limits: Limits
    base: Base
    below: int
    by_work: bool = False
    making: int = 0


def choices(problem: Problem, beam: int = BEAM) -> list[OptionSet]:
    """The sets whose objective may be less than ``below``, the smallest bound first; not the one without options."""
    return _Selection(problem, beam).run()


def least_heads(needs: Sequence[int], options: Sequence[Option]) -> list[int]:
    """For each step the smallest head that the steps from it on can have, whatever is chosen; and 0 at the end."""
    least = list(needs)
    for option in options:
        for step in range(option.first, option.end):
            least[step] = min(least[step], option.figures.head)
    found = [0]
    for need in reversed(least):
        found.append(max(need, found[-1]))
    return found[::-1]


def _least_tails(problem: Problem) -> list[int]:
    """For each step the least tail that is paid from it on: steps whose head is too large must be in an option.

    0 at the end, and everywhere where the tail does not count.
    """
    count, base = len(problem.needs), problem.base
    most = problem.below - base.tail if base.counts_tail else problem.below
    by_first: list[list[Option]] = [[] for _ in range(count)]
    for option in problem.options:
        if option.figures.head < most:
            by_first[option.first].append(option)
    found = [0] * (count + 1)
    for step in range(count - 1, -1, -1):
        tails = [option.figures.tail + found[option.end] for option in by_first[step]]
        tails += [found[step + 1]] if problem.needs[step] < most else []
        found[step] = min(tails, default=_NEVER) if base.counts_tail else 0
    return found


class _Selection:
    """Sets are rows of integers. ``links``: where a set comes from: its step, its row there, and the option added."""

    def __init__(self, problem: Problem, beam: int) -> None:
        self._problem, self._beam = problem, beam
        self._rest, self._tails = least_heads(problem.needs, problem.options), _least_tails(problem)
        count = len(problem.needs) + 1
        self._waiting: list[list[tuple[Integers, Integers]]] = [[] for _ in range(count)]
        self._links: list[Integers] = []
        self._intervals: list[dict[int, list[int]]] = [{} for _ in range(count)]
        for number, option in enumerate(problem.options):
            self._intervals[option.first].setdefault(option.end, []).append(number)
        self._rows: Integers = np.asarray([option.figures for option in problem.options], np.int64).reshape(-1, 7)
        self._rows[:, _WORK] += problem.making * self._rows[:, _OPERATORS].clip(min=0)
        total = self._rows.clip(min=0).sum(axis=0)
        limits, base = problem.limits, problem.base
        # Figures that never reach their limits do not matter.
        counts = (
            base.counts_tail,
            base.counts_tail,
            total[_MACS] > limits.macs,
            problem.by_work or total[_OPERATORS] > limits.operators,
            problem.by_work or total[_WORK] > limits.work,
        )
        self._compared = [_HEAD, *(column for column, is_counted in enumerate(counts, _TAIL) if is_counted)]
        self._hidden = self._rest[0] - base.temporaries + base.interface

    def run(self) -> list[OptionSet]:
        start = np.zeros((1, 7), np.int64)
        start[0, _HEAD] = self._rest[0]
        self._waiting[0].append((start, np.full((1, 3), -1, np.int64)))
        sets = start
        for step, need in enumerate(self._problem.needs):
            sets = self._sets_at(step)
            if not len(sets):
                continue
            grown = sets.copy()
            np.maximum(grown[:, _HEAD], need, out=grown[:, _HEAD])
            self._hand_on(step, step + 1, grown, np.arange(len(sets)), np.full(len(sets), -1))
            for end, every in self._intervals[step].items():
                numbers = np.asarray(every)
                with_least = _together(sets.min(axis=0), self._rows[numbers])
                numbers = numbers[self._is_good(with_least, end)]  # the others break a limit with every set
                more = _together(sets, self._rows[numbers][:, None])
                places = np.tile(np.arange(len(sets)), len(numbers))
                self._hand_on(step, end, more.reshape(-1, 7), places, np.repeat(numbers, len(sets)))
        return self._found(self._sets_at(len(self._problem.needs)))

    def _is_good(self, sets: Integers, end: int) -> Flags:
        """Select the sets that keep the limits and can still come below the known need."""
        least = self._problem.base.least_of_each(np.maximum(sets[:, _HEAD], self._rest[end]), sets)
        found: Flags = (least + self._tails[end] < self._problem.below) & self._problem.limits.allow_each(sets)
        return found

    def _hand_on(self, step: int, end: int, sets: Integers, places: Integers, numbers: Integers) -> None:
        """Keep the sets that meet the limits and can still beat the best known one."""
        good = self._is_good(sets, end)
        if good.any():
            links = np.empty((int(good.sum()), 3), np.int64)
            links[:, 0], links[:, 1], links[:, 2] = step, places[good], numbers[good]
            self._waiting[end].append((sets[good], links))

    def _sets_at(self, step: int) -> Integers:
        """Return the sets of the steps before this one that stay."""
        waiting = self._waiting[step]
        if not waiting:
            self._links.append(np.empty((0, 3), np.int64))
            return np.empty((0, 7), np.int64)
        sets, links = (np.concatenate(each) for each in zip(*waiting, strict=True))
        if len(waiting) > 1 or len(sets) > self._beam:
            head = np.maximum(sets[:, _HEAD], self._rest[step])
            least = self._problem.base.least_of_each(head, sets)
            near = near_beam(self._alike(head), least, _WIDER * self._beam)
            order = near[np.lexsort((*sets[near, :0:-1].T, head[near], least[near]))]
            order = order[self._in_beam(head[order], _WIDER * self._beam)]
            kept = order[_undominated(self._whole(sets[order], head[order]))]
            kept = kept[self._in_beam(head[kept], self._beam)]
            sets, links = sets[kept], links[kept]
        self._links.append(links)
        return sets

    def _alike(self, head: Integers) -> Integers:
        """Return the same number for heads that are nearly the same."""
        return head // max(1, self._problem.below // HEADS)

    def _in_beam(self, head: Integers, most: int) -> Integers:
        """Return the places of the sets that stay, which are in order: of those with like heads the first ones."""
        if len(head) <= most:
            return np.arange(len(head))
        likes = self._alike(head)
        by_head = np.argsort(likes, kind="stable")
        _, firsts, counts = np.unique(likes[by_head], return_index=True, return_counts=True)
        rank = np.empty(len(head), np.int64)
        rank[by_head] = np.arange(len(head)) - np.repeat(firsts, counts)
        found: Integers = np.sort(np.argsort(rank, kind="stable")[:most])
        return found

    def _whole(self, sets: Integers, head: Integers) -> Integers:
        """Return the figures to compare: with constants, and at least as large as the other needs."""
        whole = sets.copy()
        whole[:, _HEAD] = head
        for column, each in zip((_TAIL, _TEMPORARIES), self._problem.base.constant, strict=True):
            whole[:, column] += each * whole[:, _CONSTANTS]
        np.maximum(whole[:, _TEMPORARIES], self._hidden, out=whole[:, _TEMPORARIES])
        compared: Integers = whole[:, self._compared]
        return compared

    def _found(self, sets: Integers) -> list[OptionSet]:
        last, found = len(self._problem.needs), []
        for at, row in enumerate(sets.tolist()):
            options = self._options_of(last, at)
            if options:
                figures = Figures(*row)
                found.append(OptionSet(options, self._problem.base.least(figures), figures))
        return sorted(found, key=lambda each: (each.least, each.figures.macs, each.figures.operators, each.options))

    def _options_of(self, step: int, at: int) -> tuple[int, ...]:
        found: list[int] = []
        while step:
            step, at, number = self._links[step][at].tolist()
            if number >= 0:
                found.append(number)
        return tuple(reversed(found))


def near_beam(kinds: Integers, least: Integers, most: int) -> Integers:
    """Return the places of all sets that a beam of ``most`` may hold, which takes the best of each kind in turn.

    It takes less time than to put all in order. Of each kind as many as that comes to, with those that are as good as
    the last of them.
    """
    if len(kinds) <= most:
        return np.arange(len(kinds))
    _, kinds, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    taken = np.minimum.outer(np.arange(1, most + 1), counts).sum(axis=1)
    last = np.cumsum(counts) - counts + np.minimum(counts, 1 + np.searchsorted(taken, most)) - 1
    keys = kinds * (int(least.max()) + 1) + least
    found: Integers = np.flatnonzero(keys <= np.sort(keys)[last][kinds])
    return found


def _together(sets: Integers, options: Integers) -> Integers:
    """Sets with options more: the largest head, what the one with most constants has, and sums of the rest."""
    more: Integers = sets + options
    for column in (_HEAD, _CONSTANTS):
        more[..., column] = np.maximum(sets[..., column], options[..., column])
    return more


def _undominated(rows: Integers) -> Integers:
    """The places of rows that no earlier one equals or beats in everything. In order; what beats a row comes before."""
    # Small numbers are compared in a quarter of the time.
    small = np.min_scalar_type(len(rows))
    ranks = [np.unique(column, return_inverse=True)[1].astype(small) for column in rows.T]
    kept: Integers = np.empty(0, np.int64)
    for first in range(0, len(rows), _BLOCK):
        block = np.arange(first, min(first + _BLOCK, len(rows)))
        rivals = np.concatenate([kept, block])
        beaten = rivals[None, :] < block[:, None]
        for column in ranks:
            beaten &= column[rivals][None, :] <= column[block][:, None]
        kept = np.concatenate([kept, block[~beaten.any(axis=1)]])
    return kept
