"""Sets of operators that the rest of the problem sees as one, and the best order inside such a set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...solvers.graph.dependency_graph import MemoryProfile, TransitiveClosure, bits, union
from ...solvers.schedule.problem import MemoryGraph

MAX_STATES = 2000
"""Half-done states that are looked at before a set counts as too wide to fuse."""


@dataclass(frozen=True)
class ClosedSet:
    """``members`` share the ancestors ``before`` and the descendants ``after`` outside the set."""

    members: int
    before: int
    after: int


def closed_set(graph: MemoryGraph, closure: TransitiveClosure, members: int) -> ClosedSet | None:
    """Return the set if it is closed, else None. O(members + their tensors).

    Closed: every operator outside runs before all members, after all members, or is parallel to all members; and no
    tensor that a member reads has a parallel reader. Then what the members add to memory depends on how far they
    have come, and on nothing else. (Definition 4 of the paper asks for a single input and output on top.)
    """
    before = union(closure.before[v] for v in bits(members)) & ~members
    after = union(closure.after[v] for v in bits(members)) & ~members
    if any(before & ~closure.before[v] or after & ~closure.after[v] for v in bits(members)):
        return None
    parallel = graph.everything & ~(members | before | after)
    read = {t for v in bits(members) for t in graph.problem.steps[v].inputs}
    if any(graph.readers[t] & parallel and not graph.kept[t] for t in read):
        return None
    return ClosedSet(members, before, after)


@dataclass(frozen=True)
class InnerOrder:
    """``order`` has the smallest peak of the set on its own.

    ``written`` are the tensors that the set writes; ``left`` those of them that outlive it.
    """

    members: int
    order: tuple[int, ...]
    profile: MemoryProfile
    written: frozenset[int]
    left: tuple[int, ...]


@dataclass(frozen=True)
class _HalfDone:
    """Some members ran: bytes alive, the smallest peak on the way here, the way."""

    alive: int
    peak: int
    order: tuple[int, ...]


def inner_order(graph: MemoryGraph, chosen: ClosedSet) -> InnerOrder | None:
    """Dynamic programming over all half-done states; None for a single operator or too many states."""
    size = chosen.members.bit_count()
    if size < 2:
        return None
    level = {0: _HalfDone(0, 0, ())}
    lightest: list[int] = []
    first_need = last_need = states = 0
    for ran in range(size):
        level, last_need = _advance(graph, chosen, level)
        states += len(level)
        if states > MAX_STATES:
            return None
        first_need = first_need if ran else last_need
        lightest += [state.alive for state in level.values()]
    end = lightest.pop()
    (best,) = level.values()
    written = [t for v in bits(chosen.members) for t in graph.problem.steps[v].outputs]
    left = tuple(t for t in written if not graph.dies(t, chosen.after))
    profile = MemoryProfile(end, min(lightest), first_need, last_need, best.peak)
    return InnerOrder(chosen.members, best.order, profile, frozenset(written), left)


def _advance(graph: MemoryGraph, chosen: ClosedSet, level: dict[int, _HalfDone]) -> tuple[dict[int, _HalfDone], int]:
    """Return the states with one member more, and the least need of the members that ran."""
    onward: dict[int, _HalfDone] = {}
    least: list[int] = []
    for done, state in level.items():
        executed = chosen.before | done
        for v in _ready(graph, chosen, done):
            need, alive = graph.run(executed, state.alive, v)
            least.append(need)
            peak, reached = max(state.peak, need), done | 1 << v
            known = onward.get(reached)
            if known is None or peak < known.peak:
                onward[reached] = _HalfDone(alive, peak, (*state.order, v))
    return onward, min(least)


def _ready(graph: MemoryGraph, chosen: ClosedSet, done: int) -> Iterator[int]:
    executed = chosen.before | done
    return (v for v in bits(chosen.members & ~done) if not graph.needs[v] & ~executed)
