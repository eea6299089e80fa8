"""Sets of operators that the rest of the problem sees as one: the isolated sub-graphs of the fusion theorems."""

from __future__ import annotations

from dataclasses import dataclass

from ..reach import Reach
from ..wiring import Wiring, bits


@dataclass(frozen=True)
class ClosedSet:
    """``members`` share the ancestors ``before`` and the descendants ``after`` outside the set."""

    members: int
    before: int
    after: int


def closed_set(wiring: Wiring, known: Reach, members: int) -> ClosedSet | None:
    """The set if it is closed, else None. O(members + their tensors).

    Closed: every operator outside runs before all members, after all members, or is parallel to all members; and no
    tensor that a member reads has a parallel reader. Then what the members add to memory depends on how far they
    have come, and on nothing else. (Definition 4 of the paper asks for a single input and output on top.)
    """
    before = after = 0
    for v in bits(members):
        before |= known.before[v]
        after |= known.after[v]
    before &= ~members
    after &= ~members
    if any(before & ~known.before[v] or after & ~known.after[v] for v in bits(members)):
        return None
    parallel = wiring.everything & ~(members | before | after)
    read = {t for v in bits(members) for t in wiring.problem.steps[v].inputs}
    if any(wiring.readers[t] & parallel and not wiring.kept[t] for t in read):
        return None
    return ClosedSet(members, before, after)
