"""Which regions to run in stripes, as a problem of integers, and its exact solution.

The steps of a model, in order, each need some bytes, and options (``selection``) replace intervals of them. What a
selection needs at least follows from its largest step or option, and from the sums of what its options pay.

Dynamic programming over the steps: of the selections of the first steps those stay that no other one beats in
everything (``dominance``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .cut_table import Integers
from .dominance import Floors, undominated
from .selection import TEMPORARIES_OF_CONSTANT, BaseNeed, Option, Selection, SelectionLimits, least_need

_NONE = -1
"""In place of a tail: there is no such step."""


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
    """The selections that no other one beats in bound, tail, temporaries, MACs and work.

    ``counts_run_time``: nor in operators. ``needs[s]``: a lower bound on the head while step s runs as it
    stands. Only those whose objective can be less than ``below`` bytes, the smallest bound first; the selection without
    options is not among them.
    """
    return tuple(_best_first(_Problem(needs, options, limits, base, below, counts_run_time)))


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


def _labels(problem: _Problem) -> list[Selection]:
    """Undominated selections of all steps."""
    needs, rest, floors = problem.needs, _Rest(problem), _floors(problem)
    by_first: dict[int, list[int]] = {}
    for number, option in enumerate(problem.options):
        by_first.setdefault(option.first, []).append(number)
    labels: list[list[Selection]] = [[] for _ in range(len(needs) + 1)]
    labels[0] = [Selection((), rest.head[0], 0, 0, 0, 0)]
    is_new = [step == 0 for step in range(len(labels))]
    for step, need in enumerate(needs):
        if is_new[step]:  # what goes on from the step before as it was stays undominated
            labels[step] = undominated(labels[step], floors[step])
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
    return undominated(labels[len(needs)], floors[-1])


def _floors(problem: _Problem) -> list[Floors]:
    """For each step what a selection of those before it may add without ever coming to a limit.

    Operators matter near the limit alone, and temporaries where they may exceed the head. Work that is limited matters
    anywhere, as MACs do: without it amoebanet (reference) ended 208 bytes above, for a reason that was not looked into.
    """
    limits, base, options = problem.limits, problem.base, problem.options
    operators = [limits.operators - most for most in _most(problem, lambda option: option.operators)]
    work = 0 if sum(option.work for option in options) > limits.work else limits.work
    if problem.counts_run_time:
        operators = [0] * len(operators)
    hidden = least_heads(problem.needs, options)[0] + base.interface - base.temporaries if base.counts_tail else 0
    temporaries = [hidden - most for most in _most(problem, _whole_temporaries)]
    return [Floors(*each, work) for each in zip(temporaries, operators, strict=True)]


def _whole_temporaries(option: Option) -> int:
    return option.temporaries + TEMPORARIES_OF_CONSTANT * option.constants.bit_count()


def _most(problem: _Problem, figure: Callable[[Option], int]) -> list[int]:
    """For each step, and behind the last one, the most that options which do not overlap add from there on."""
    most = [0] * (len(problem.needs) + 1)
    adds: dict[int, list[tuple[int, int]]] = {}
    for option in problem.options:
        adds.setdefault(option.first, []).append((option.end, figure(option)))
    for step in range(len(problem.needs) - 1, -1, -1):
        most[step] = max([most[step + 1], *(most[end] + added for end, added in adds.get(step, ()))])
    return most


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
        by_need = sorted(range(len(problem.needs)), key=problem.needs.__getitem__)
        self._needs = [problem.needs[step] for step in by_need]
        self._tails = _largest_from(by_need, [max(0, tails.get(step, 0)) for step in by_need])

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
        at = bisect_right(self._needs, allowed)
        tail = _NONE if at == len(self._needs) else int(self._tails[step, at])
        return tail == _NONE or base.least(head, label.tail + tail, label.temporaries) < below


def _largest_from(steps: Sequence[int], tails: Sequence[int]) -> Integers:
    """``[s, k]``: the largest tail at place k or later, of steps from s on; ``steps`` and tails are in order."""
    firsts = np.arange(len(steps) + 1)[:, None]
    there = np.where(np.asarray(steps, np.int64) >= firsts, np.asarray(tails, np.int64), _NONE)
    found: Integers = np.maximum.accumulate(there[:, ::-1], axis=1)[:, ::-1]
    return found


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
