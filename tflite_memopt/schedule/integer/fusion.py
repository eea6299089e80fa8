"""Fusion of operators that some optimal order runs in one go (Theorems IV.1 and IV.2, Algorithm 1).

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization", section IV.B. The paper
speaks of one input and one output tensor; what its proof uses is less, and is asked for here (:mod:`.closed_set`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..problem import ScheduleProblem, Step
from ..reach import Reach, reach
from ..wiring import Wiring, bits, wire
from .closed_set import closed_set
from .inner_order import InnerOrder, inner_order

MAX_SIZE = 24
"""Operators in a set that is tried (the paper's M); sets grow further as fused operators join again."""


@dataclass(frozen=True)
class Fused:
    """``problem`` has one step for each fused set; ``members[v]`` are the operators that step v runs, in order.

    A fused step's ``scratch`` may be negative: its set needs less at once than all that it leaves behind and
    everything alive before it, since it frees inputs on the way.
    """

    problem: ScheduleProblem
    members: tuple[tuple[int, ...], ...]

    def expand(self, order: Iterable[int]) -> tuple[int, ...]:
        """The order of the original operators; its peak is that of ``order``."""
        return tuple(operator for v in order for operator in self.members[v])


def unfused(problem: ScheduleProblem) -> Fused:
    """The problem as it is: each operator alone."""
    return Fused(problem, tuple((v,) for v in range(len(problem.steps))))


def fuse(problem: ScheduleProblem, max_size: int = MAX_SIZE) -> Fused:
    """Fuse until nothing more can be (Algorithm 1); the smallest peak of any order stays the same."""
    fused = unfused(problem)
    while True:
        found = _fusable(fused.problem, max_size)
        if not found:
            return fused
        fused = _apply(fused, found)


def _fusable(problem: ScheduleProblem, max_size: int) -> list[InnerOrder]:
    """Disjoint sets that can be fused. One fusion changes nothing that another one's conditions look at."""
    wiring = wire(problem)
    known = reach(wiring)
    taken = 0
    found: list[InnerOrder] = []
    for start in _starts(wiring, known):
        inner = None if start & taken else _first_fusable(wiring, known, start, max_size, taken)
        if inner:
            found.append(inner)
            taken |= inner.members
    return found


def _starts(wiring: Wiring, known: Reach) -> Iterator[int]:
    """Where sets may begin, in schedule order: at one operator, or at all readers of one tensor."""
    for t in dict.fromkeys(wiring.problem.inputs):
        yield wiring.readers[t]
    for v in known.order:
        yield 1 << v
        for t in wiring.problem.steps[v].outputs:
            if wiring.readers[t].bit_count() > 1:
                yield wiring.readers[t]


def _first_fusable(wiring: Wiring, known: Reach, start: int, max_size: int, taken: int) -> InnerOrder | None:
    """Grow a set in schedule order, as Algorithm 1 does, until it can be fused, or is too large."""
    members = start
    while members.bit_count() <= max_size and not members & taken:
        chosen = closed_set(wiring, known, members)
        inner = inner_order(wiring, chosen) if chosen else None
        if inner and _stays_optimal(inner):
            return inner
        onward = 0
        for v in bits(members):
            onward |= wiring.feeds[v]
        onward &= ~members
        if not onward:
            return None
        members |= 1 << min(bits(onward), key=known.position.__getitem__)
    return None


def _stays_optimal(inner: InnerOrder) -> bool:
    """Whether some optimal order of the whole runs the set in one go, in its best inner order.

    Take any order, and gather the set at one moment between its first and its last operator. Operators of the
    others then meet the set not begun (before that moment) or complete (after it) instead of half done.

    - Theorem IV.2: half done never weighs less than not begun or complete. Gather where the others weigh least.
    - Theorem IV.1, rising: half done never weighs less than not begun, and the last operator needs most, whichever
      it is. Gather at the last operator. Falling: the mirror image.

    The paper looks at half-done states of one inner order only. Another inner order may pass through a lighter
    state, worth waiting in while others run; so every half-done state counts here.
    """
    not_begun, complete = 0, inner.end
    rising = inner.lightest >= not_begun and inner.peak <= inner.last_need
    falling = inner.lightest >= complete and inner.peak <= inner.first_need
    return inner.lightest >= max(not_begun, complete) or rising or falling


def _apply(fused: Fused, found: Iterable[InnerOrder]) -> Fused:
    """The problem with each set as one step."""
    groups = {inner.order[0]: inner for inner in found}
    absorbed = {v for inner in groups.values() for v in inner.order[1:]}
    heads = [v for v in range(len(fused.members)) if v not in absorbed]
    orders = [groups[v].order if v in groups else (v,) for v in heads]
    place = {v: number for number, order in enumerate(orders) for v in order}
    steps = (
        _joined(fused.problem, groups[v], place) if v in groups else _renumbered(fused.problem.steps[v], place)
        for v in heads
    )
    problem = replace(fused.problem, steps=tuple(steps))
    return Fused(problem, tuple(fused.expand(order) for order in orders))


def _joined(problem: ScheduleProblem, inner: InnerOrder, place: Mapping[int, int]) -> Step:
    """One step that stands for a set: it reads and writes what crosses the set's border."""
    steps = [problem.steps[v] for v in inner.order]
    inputs = dict.fromkeys(t for step in steps for t in step.inputs if t not in inner.written)
    own = place[inner.order[0]]
    after = dict.fromkeys(place[v] for step in steps for v in step.after if place[v] != own)
    scratch = inner.peak - sum(problem.sizes[t] for t in inner.left)
    return Step(tuple(inputs), inner.left, scratch, tuple(after))


def _renumbered(step: Step, place: Mapping[int, int]) -> Step:
    return replace(step, after=tuple(dict.fromkeys(place[v] for v in step.after)))
