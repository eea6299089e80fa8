"""Options and selections of them: what a set of regions in stripes adds to a model, as integers.

An *option* replaces an interval of steps by stripes that need less, and pays for it with persistent bytes, planner
temporaries, MACs and operators. A *selection* is a set of options that do not overlap. Equal constants of several
options are one tensor: they are sets, so that none is counted twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

TAIL_OF_CONSTANT = 12
"""Bytes of a constant's TfLiteEvalTensor on 32 bits; 64 bits take more."""
TEMPORARIES_OF_CONSTANT = 24
"""Bytes of its AllocationInfo on 32 bits."""


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

    def covers(self, step: int) -> bool:
        """Whether the step runs in its stripes."""
        return self.first <= step < self.end


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


def least_need(base: BaseNeed, selection: Selection) -> int:
    """The least that the objective can be, in bytes, before TFLM's alignment of the whole."""
    return base.least(selection.bound, selection.whole_tail, selection.whole_temporaries)
