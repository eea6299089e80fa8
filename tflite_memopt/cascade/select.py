"""Which regions to run in stripes, as a problem of integers, and its exact solution.

The steps of a model, in order, each need some bytes. An *option* replaces an interval of steps by stripes that need
less, and pays for it with persistent bytes, planner temporaries, MACs and operators. A *selection* is a set of options
that do not overlap. What it needs at least follows from its largest step or option, and from the sums of what it pays.

Dynamic programming over the steps: of the selections of the first steps those stay that no other one beats in
everything. Equal constants of several options are one tensor; they are counted as sets, so that nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import le, or_

TAIL_OF_CONSTANT = 12
TEMPORARIES_OF_CONSTANT = 24


@dataclass(frozen=True)
class Option:
    """Steps ``first`` to ``end``, half-open, in stripes: at least ``bound`` bytes of head while they run.

    ``tail`` and ``temporaries`` (bytes), ``macs`` and ``operators`` are what is added to the model's, without the
    ``constants``: a set with a bit for each.
    """

    first: int
    end: int
    bound: int
    tail: int
    temporaries: int
    macs: int
    operators: int
    constants: int = 0


@dataclass(frozen=True)
class SelectionLimits:
    """The most that a selection may add."""

    macs: int
    operators: int


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
    """Options by number, in order; ``bound`` is the largest of all steps and options, the rest are sums over the options."""

    options: tuple[int, ...]
    bound: int
    tail: int
    temporaries: int
    macs: int
    operators: int
    constants: int = 0

    @cached_property
    def whole_tail(self) -> int:
        """With the constants."""
        return self.tail + TAIL_OF_CONSTANT * self.constants.bit_count()

    @cached_property
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


def selections(
    needs: Sequence[int], options: Sequence[Option], limits: SelectionLimits, base: BaseNeed, below: int
) -> tuple[Selection, ...]:
    """The selections that no other one beats in bound, tail, temporaries, MACs and operators at once.

    ``needs[s]``: a lower bound on the head while step s runs as it stands. Only those whose objective can be less than
    ``below`` bytes, the smallest bound first; the selection without options is not among them.
    """
    return tuple(_best_first(_Problem(needs, options, limits, base, below)))


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
    needs, base = problem.needs, problem.base
    rest = least_heads(needs, problem.options)
    by_first: dict[int, list[int]] = {}
    for number, option in enumerate(problem.options):
        by_first.setdefault(option.first, []).append(number)
    labels: list[list[Selection]] = [[] for _ in range(len(needs) + 1)]
    labels[0] = [Selection((), rest[0], 0, 0, 0, 0)]
    for step, need in enumerate(needs):
        labels[step] = undominated(labels[step])
        for label in labels[step]:
            grown = _grown(label, need)
            if base.least(grown.bound, grown.whole_tail, grown.whole_temporaries) < problem.below:
                labels[step + 1].append(grown)
            for number in by_first.get(step, ()):
                chosen = _with(label, number, problem.options[number])
                if _is_possible(problem, chosen):
                    labels[problem.options[number].end].append(chosen)
    return undominated(labels[len(needs)])


def _is_possible(problem: _Problem, chosen: Selection) -> bool:
    limits = problem.limits
    if chosen.macs > limits.macs or chosen.operators > limits.operators:
        return False
    return least_need(problem.base, chosen) < problem.below


def _grown(label: Selection, need: int) -> Selection:
    if need <= label.bound:
        return label
    return Selection(
        label.options, need, label.tail, label.temporaries, label.macs, label.operators, label.constants
    )


def _with(label: Selection, number: int, option: Option) -> Selection:
    return Selection(
        (*label.options, number),
        max(label.bound, option.bound),
        label.tail + option.tail,
        label.temporaries + option.temporaries,
        label.macs + option.macs,
        label.operators + option.operators,
        label.constants | option.constants,
    )


def undominated(labels: Sequence[Selection]) -> list[Selection]:
    """Without those that another one equals or beats in everything, whatever is added to both."""
    kept: list[tuple[tuple[int, ...], Selection]] = []
    for own, label in sorted(((_price(label), label) for label in labels), key=lambda pair: pair[0]):
        if not any(all(map(le, other, own)) and _is_cheaper(better, label) for other, better in kept):
            kept.append((own, label))
    return [label for _, label in kept]


def _price(label: Selection) -> tuple[int, ...]:
    return label.bound, label.whole_tail, label.macs, label.operators


def _is_cheaper(one: Selection, other: Selection) -> bool:
    """Whether one takes no more tail and temporaries than the other, if what is added shares constants with the other."""
    alone = (one.constants & ~other.constants).bit_count()
    return (
        one.tail + TAIL_OF_CONSTANT * (one.constants.bit_count() - other.constants.bit_count()) <= other.tail
        and one.tail + TAIL_OF_CONSTANT * alone <= other.tail
        and one.temporaries + TEMPORARIES_OF_CONSTANT * alone <= other.temporaries
    )


def constants_together(options: Sequence[Option]) -> int:
    """The constants of several options, as a set."""
    return reduce(or_, (option.constants for option in options), 0)
