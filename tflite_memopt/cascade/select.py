"""Which regions to run in stripes, as a problem of integers, and its exact solution.

The steps of a model, in order, each need some bytes. An *option* replaces an interval of steps by stripes that need
less, and pays for it with persistent bytes, planner temporaries, MACs and operators. A *selection* is a set of options
that do not overlap. What it needs at least follows from its largest step or option, and from the sums of what it pays.

Dynamic programming over the steps: of the selections of the first steps those stay that no other one beats in
everything. Equal constants of several options are one tensor: they are sets, so that none is counted twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import numpy as np

TAIL_OF_CONSTANT = 12
"""Bytes of a constant's TfLiteEvalTensor on 32 bits; 64 bits take more."""
TEMPORARIES_OF_CONSTANT = 24
"""Bytes of its AllocationInfo on 32 bits."""


_BLOCK = 256
"""Labels that are compared with all at once."""


@dataclass(frozen=True)
class Option:
    """Steps ``first`` to ``end``, half-open, in stripes: at least ``bound`` bytes of head while they run.

    ``tail`` and ``temporaries`` (bytes), ``macs``, ``operators`` and ``work`` (``memory/work.py``) are what is added to
    the model's, without the ``constants``: a set with a bit for each.
    """

    first: int
    end: int
    bound: int
    tail: int
    temporaries: int
    macs: int
    operators: int
    constants: int = 0
    work: int = 0


@dataclass(frozen=True)
class SelectionLimits:
    """The most that a selection may add."""

    macs: int
    operators: int
    work: int = 1 << 62

    def allow(self, added: Selection) -> bool:
        """Whether all of what a selection adds is within them."""
        return added.macs <= self.macs and added.operators <= self.operators and added.work <= self.work


@dataclass(frozen=True)
class BaseNeed:
    """What the model takes beside its head, in bytes. ``interface``: the part of the tail that comes after the planner.

    ``counts_tail``: whether the objective is the whole arena, and not the head alone.
    """

    tail: int
    temporaries: int
    interface: int
    counts_tail: bool = True

    def least(self, head: int, tail: int, temporaries: int) -> int:
        """A lower bound on the objective with this much more tail and temporaries."""
        if not self.counts_tail:
            return head
        return self.tail + tail + max(head, self.temporaries + temporaries - self.interface)


@dataclass(frozen=True)
class Selection:
    """Options by number, in order; ``bound`` is the largest of all steps and options, the rest are sums of options."""

    options: tuple[int, ...]
    bound: int
    tail: int
    temporaries: int
    macs: int
    operators: int
    constants: int = 0
    work: int = 0

    @property
    def whole_tail(self) -> int:
        """With the constants."""
        return self.tail + TAIL_OF_CONSTANT * self.constants.bit_count()

    @property
    def whole_temporaries(self) -> int:
        """With the constants."""
        return self.temporaries + TEMPORARIES_OF_CONSTANT * self.constants.bit_count()


@dataclass(frozen=True)
class _Problem:
    needs: Sequence[int]
    options: Sequence[Option]
    limits: SelectionLimits
    base: BaseNeed
    below: int
    counts_run_time: bool


def selections(
    needs: Sequence[int],
    options: Sequence[Option],
    limits: SelectionLimits,
    base: BaseNeed,
    below: int,
    counts_run_time: bool = False,
) -> tuple[Selection, ...]:
    """The selections that no other one beats in bound, tail, temporaries, and in MACs, operators, work if limited.

    ``counts_run_time``: in MACs and operators also where the limits allow any number.

    ``needs[s]``: a lower bound on the head while step s runs as it stands. Only those whose objective can be less than
    ``below`` bytes, the smallest bound first; the selection without options is not among them.
    """
    return tuple(_best_first(_Problem(needs, options, limits, base, below, counts_run_time)))


def selection_of(needs: Sequence[int], options: Sequence[Option]) -> Selection:
    """What options that do not overlap come to; they are numbered as they stand."""
    covered = {step for option in options for step in range(option.first, option.end)}
    bounds = [need for step, need in enumerate(needs) if step not in covered]
    return Selection(
        tuple(range(len(options))),
        max((*bounds, *(option.bound for option in options)), default=0),
        sum(option.tail for option in options),
        sum(option.temporaries for option in options),
        sum(option.macs for option in options),
        sum(option.operators for option in options),
        reduce(or_, (option.constants for option in options), 0),
        sum(option.work for option in options),
    )


def least_heads(needs: Sequence[int], options: Sequence[Option]) -> list[int]:
    """For each step the smallest head that the steps from it on can have, whatever is selected; and 0 at the end."""
    least = list(needs)
    for option in options:
        for step in range(option.first, option.end):
            least[step] = min(least[step], option.bound)
    found = [0]
    for need in reversed(least):
        found.append(max(need, found[-1]))
    return found[::-1]


def _best_first(problem: _Problem) -> Iterator[Selection]:
    labels = _labels(problem)
    base = problem.base
    found = [label for label in labels if label.options]
    found.sort(key=lambda each: (least_need(base, each), each.macs, each.operators, each.options))
    return iter(found)


def least_need(base: BaseNeed, selection: Selection) -> int:
    """The least that the objective can be, in bytes, before TFLM's alignment of the whole."""
    return base.least(selection.bound, selection.whole_tail, selection.whole_temporaries)


def _labels(problem: _Problem) -> list[Selection]:
    """Undominated selections of all steps."""
    needs = problem.needs
    rest, counts = _Rest(problem), counted(problem.options, problem.limits)
    if problem.counts_run_time:
        counts = True, True, counts[2]
    by_first: dict[int, list[int]] = {}
    for number, option in enumerate(problem.options):
        by_first.setdefault(option.first, []).append(number)
    labels: list[list[Selection]] = [[] for _ in range(len(needs) + 1)]
    labels[0] = [Selection((), rest.head[0], 0, 0, 0, 0)]
    is_new = [step == 0 for step in range(len(labels))]
    for step, need in enumerate(needs):
        if is_new[step]:  # what goes on from the step before as it was stays undominated
            labels[step] = undominated(labels[step], counts)
        for label in labels[step]:
            grown = label if need <= label.bound else replace(label, bound=need)
            # What may come before a step may do so after it, if it is no larger.
            if (grown is label and step > 0) or rest.allows(grown, step + 1):
                labels[step + 1].append(grown)
                is_new[step + 1] = is_new[step + 1] or grown is not label
            for number in by_first.get(step, ()):
                option = problem.options[number]
                if label.macs + option.macs > problem.limits.macs or not rest.may_allow(label, option):
                    continue
                chosen = _with(label, number, option)
                if problem.limits.allow(chosen) and rest.allows(chosen, option.end):
                    labels[option.end].append(chosen)
                    is_new[option.end] = True
    return undominated(labels[len(needs)], counts)


class _Rest:
    """What the steps that are still to come take at least.

    ``head[s]``: the smallest head from step s on. A step that needs more than a head that is still allowed must be in
    an option, and takes its tail.
    """

    def __init__(self, problem: _Problem) -> None:
        self._problem = problem
        self.head = least_heads(problem.needs, problem.options)
        tails: dict[int, int] = {}
        for option in problem.options:
            for step in range(option.first, option.end):
                tails[step] = min(tails.get(step, option.tail), option.tail)
        self._covered: list[list[tuple[int, int]]] = []
        for first in range(len(problem.needs) + 1):
            largest, found = -1, []
            for need, tail in sorted((problem.needs[s], tails.get(s, 0)) for s in range(first, len(problem.needs)))[
                ::-1
            ]:
                largest = max(largest, tail)
                found.append((need, largest))
            self._covered.append(found[::-1])

    def may_allow(self, label: Selection, option: Option) -> bool:
        """Whether ``allows`` may be true with this option more; constants are left out, so that it is quick."""
        head = max(label.bound, option.bound, self.head[option.end])
        least = self._problem.base.least(head, label.tail + option.tail, label.temporaries + option.temporaries)
        return least < self._problem.below

    def allows(self, label: Selection, step: int) -> bool:
        """Whether a selection of the steps before this one can still come below the limit."""
        base, below = self._problem.base, self._problem.below
        head = max(label.bound, self.head[step])
        least = base.least(head, label.whole_tail, label.whole_temporaries)
        if least >= below or not base.counts_tail:
            return least < below
        allowed = below - base.tail - label.tail
        covered = self._covered[step]
        at = bisect_right(covered, (allowed, 1 << 60))
        return at == len(covered) or base.least(head, label.tail + max(0, covered[at][1]), label.temporaries) < below


def _with(label: Selection, number: int, option: Option) -> Selection:
    return Selection(
        (*label.options, number),
        max(label.bound, option.bound),
        label.tail + option.tail,
        label.temporaries + option.temporaries,
        label.macs + option.macs,
        label.operators + option.operators,
        label.constants | option.constants,
        label.work + option.work,
    )


def undominated(labels: Sequence[Selection], counts: tuple[bool, bool, bool] = (True, True, True)) -> list[Selection]:
    """Without those that another one equals or beats in everything, whatever is added to both.

    ``counts``: whether MACs, operators and work are part of everything.
    """
    ordered = sorted(((_price(label), label) for label in labels), key=lambda pair: pair[0])
    # Who is cheaper whatever is added has no more tail and temporaries without constants either.
    figures = [(*price, label.tail, label.temporaries) for price, label in ordered]
    prices = np.asarray(figures, np.int64).reshape(len(ordered), 7)
    columns = [
        6,
        5,
        *(column for column, is_counted in ((3, counts[1]), (2, counts[0]), (4, counts[2])) if is_counted),
        1,
        0,
    ]
    kept: list[int] = []
    for first in range(0, len(ordered), _BLOCK):
        block = prices[first : first + _BLOCK]
        rivals = np.concatenate([np.asarray(kept, np.intp), np.arange(first, first + len(block))])
        beats = np.ones((len(block), len(rivals)), np.bool_)
        for column in columns:
            beats &= prices[rivals, column] <= block[:, column, None]
        is_kept = dict.fromkeys(kept, True)
        for at, row in enumerate(beats, first):
            own = ordered[at][1]
            others = (int(rivals[k]) for k in np.flatnonzero(row))
            is_kept[at] = not any(
                other < at and is_kept[other] and _is_cheaper(ordered[other][1], own) for other in others
            )
        kept = [at for at, stays in is_kept.items() if stays]
    return [ordered[at][1] for at in kept]


def counted(options: Sequence[Option], limits: SelectionLimits) -> tuple[bool, bool, bool]:
    """Whether options together may exceed the limit on MACs, that on operators, and that on work."""
    macs, operators, work = (sum(getattr(option, name) for option in options) for name in ("macs", "operators", "work"))
    return macs > limits.macs, operators > limits.operators, work > limits.work


def _price(label: Selection) -> tuple[int, int, int, int, int]:
    return label.bound, label.whole_tail, label.macs, label.operators, label.work


def _is_cheaper(one: Selection, other: Selection) -> bool:
    """Whether one takes no more tail and temporaries, even if all that is added shares constants with the other."""
    alone = (one.constants & ~other.constants).bit_count()
    is_cheaper = one.tail + TAIL_OF_CONSTANT * alone <= other.tail
    return is_cheaper and one.temporaries + TEMPORARIES_OF_CONSTANT * alone <= other.temporaries
