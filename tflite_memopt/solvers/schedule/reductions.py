"""Exact reductions: operators that may run back to back in some optimal order become one fused operator.

Memory is counted relative to what is alive when the fused operator starts. Its need is computed from its
*candidates*: one for each operator in it that may have the largest working set. Whether an input was read for the
last time depends on which other operators ran, so a candidate keeps the input's number, not its bytes.

The reductions are the fusion theorems of ``graph/dependency_graph.py`` on two operators, first -> second, where one
waits for the other alone:

    late     second alone waits for first, and the two are rising: running first earlier only holds memory;
    soon     second waits for first alone, and the two are falling: running second at once only frees memory;
    hill     each waits for the other alone, first rises and second falls: it never pays to stop on top.

The paper states the theorems for single-tensor chains. Here there may be further inputs that others read too: a rule
is used only where it holds whichever of these die, since that depends on what ran before. That the rules keep the
optimum follows from the bytes alive being a submodular function of the set of executed operators: what an operator
adds to them can only fall when more has run before it.

The integer program's fusion looks at sets of operators whose inputs have no parallel reader; this one at pairs whose
inputs may have some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from ..graph.dependency_graph import (
    MemoryProfile,
    TransitiveClosure,
    bits,
    first_ready_first,
    transitive_closure,
    union,
)
from .problem import MemoryGraph, Reuse, ScheduleProblem


@dataclass(frozen=True)
class PeakCandidate:
    """``extra`` bytes on top of what was alive at the start, less ``released`` and one of ``reuses``.

    ``released`` are inputs of the fused operator that it has read for the last time: they are gone if nobody else
    waits for them.
    """

    extra: int
    released: frozenset[int] = frozenset()
    reuses: tuple[Reuse, ...] = ()

    def settled(self, dying: frozenset[int], sizes: tuple[int, ...]) -> PeakCandidate:
        """Return the same candidate where ``dying`` are known to die: their bytes become part of ``extra``."""
        released = sum(sizes[t] for t in self.released & dying)
        certain = max((r.saved for r in self.reuses if r.tensor in dying), default=0)
        # A certain reuse always holds; the others can only save what they save beyond it.
        reuses = tuple(Reuse(r.tensor, r.saved - certain) for r in self.reuses if r.saved > certain)
        return PeakCandidate(self.extra - released - certain, self.released - dying, reuses)

    def covers(self, other: PeakCandidate) -> bool:
        """Tell whether this one needs at least as much as the other in every state."""
        return self.extra >= other.extra and self.released <= other.released and not self.reuses


@dataclass(frozen=True)
class FusedOperator:
    """``grow`` are the bytes that its operators write and leave alive, before any of ``inputs`` dies.

    ``inputs`` are the tensors it reads that others write or read, or the graph gives.
    """

    candidates: tuple[PeakCandidate, ...]
    grow: int
    inputs: frozenset[int]

    def need(self, sizes: tuple[int, ...], dying: frozenset[int]) -> int:
        """Largest need in bytes on top of what is alive before, when the inputs in ``dying`` have no other reader."""
        most = 0
        for candidate in self.candidates:
            extra = candidate.extra
            if candidate.released:
                extra -= sum(sizes[t] for t in candidate.released & dying)
            if candidate.reuses:
                extra -= max((r.saved for r in candidate.reuses if r.tensor in dying), default=0)
            most = max(most, extra)
        return most

    def change(self, sizes: tuple[int, ...], dying: frozenset[int]) -> int:
        """Return the bytes alive after it less those alive before it, when ``dying`` have no other reader."""
        return self.grow - sum(sizes[t] for t in self.inputs & dying)


def single_operator(problem: ScheduleProblem, index: int, unread: frozenset[int]) -> FusedOperator:
    """One operator by itself. ``unread`` are the tensors that nobody reads and the graph does not return."""
    step, sizes = problem.steps[index], problem.sizes
    written = sum(sizes[t] for t in step.outputs)
    candidate = PeakCandidate(written + step.scratch, reuses=step.reuses)
    kept = sum(sizes[t] for t in step.outputs if t not in unread)
    return FusedOperator((candidate,), kept, frozenset(step.inputs))


def joined(first: FusedOperator, second: FusedOperator, sizes: tuple[int, ...], inner: frozenset[int]) -> FusedOperator:
    """The operator that runs ``first``, then ``second``. ``inner`` are the tensors that live and die inside it: written
    by the first and read by nobody but the second.
    """
    gone = first.inputs - second.inputs
    candidates = [_still_read(candidate, second.inputs) for candidate in first.candidates]
    for candidate in second.candidates:
        settled = candidate.settled(inner, sizes)
        candidates.append(PeakCandidate(first.grow + settled.extra, settled.released | gone, settled.reuses))
    grow = first.grow + second.grow - sum(sizes[t] for t in inner)
    return FusedOperator(_largest(candidates), grow, (first.inputs | second.inputs) - inner)


def _still_read(candidate: PeakCandidate, read_later: frozenset[int]) -> PeakCandidate:
    """Return the candidate, when the tensors of ``read_later`` cannot die at it."""
    if candidate.released.isdisjoint(read_later) and not candidate.reuses:
        return candidate
    reuses = tuple(r for r in candidate.reuses if r.tensor not in read_later)
    return PeakCandidate(candidate.extra, candidate.released - read_later, reuses)


def _largest(candidates: Iterable[PeakCandidate]) -> tuple[PeakCandidate, ...]:
    """Return those that some state can make the largest."""
    kept: list[PeakCandidate] = []
    for candidate in candidates:
        if any(other.covers(candidate) for other in kept):
            continue
        kept = [other for other in kept if not candidate.covers(other)]
        kept.append(candidate)
    return tuple(kept)


class FusedGraph:
    """Fused operators by number, the edges that matter, and who reads which tensor.

    A contraction keeps the first one's number. ``needs`` and ``feeds`` leave out edges that follow from others.
    ``before[v]`` and ``after[v]`` are sets of single operators (bit = operator) that always run before and after fused
    operator v; contractions may add order that they do not show yet, so they are sound but not complete.
    ``members[v]`` is the set of its own operators.
    """

    def __init__(self, graph: MemoryGraph) -> None:
        problem, numbers = graph.problem, range(len(graph.needs))
        self.sizes = problem.sizes
        self.kept = frozenset(problem.outputs)
        self.inputs = frozenset(problem.inputs)
        self.alive_at_start = graph.alive_at_start
        self.readers = graph.readers
        unread = frozenset(t for t, readers in enumerate(self.readers) if not readers and t not in self.kept)
        self.operators = {v: single_operator(problem, v, unread) for v in numbers}
        self.order = {v: [v] for v in numbers}
        self.outputs = {v: set(step.outputs) for v, step in enumerate(problem.steps)}
        self.members = {v: 1 << v for v in numbers}
        closure = transitive_closure(graph)
        self.before, self.after = dict(enumerate(closure.before)), dict(enumerate(closure.after))
        self.needs = {v: _direct_needs(graph, closure, v) for v in numbers}
        self.feeds: dict[int, set[int]] = {v: set() for v in numbers}
        for v, needs in self.needs.items():
            for u in needs:
                self.feeds[u].add(v)
        self._always: dict[int, frozenset[int]] = {}
        self._may: dict[int, frozenset[int]] = {}

    def always_dying(self, v: int) -> frozenset[int]:
        """Return the inputs that die with fused operator v in every order: all their other readers come before it."""
        if v not in self._always:
            here = self.members[v] | self.before[v]
            self._always[v] = frozenset(t for t in self.operators[v].inputs - self.kept if not self.readers[t] & ~here)
        return self._always[v]

    def may_die(self, v: int) -> frozenset[int]:
        """Return the inputs that die with fused operator v in some order: none of their readers comes after it."""
        if v not in self._may:
            after = self.after[v]
            self._may[v] = frozenset(t for t in self.operators[v].inputs - self.kept if not self.readers[t] & after)
        return self._may[v]

    def _inner(self, first: int, second: int) -> frozenset[int]:
        """Tensors that the first writes and whose last readers are in the second, whatever the order."""
        both = self.members[first] | self.members[second]
        read = self.outputs[first] & self.operators[second].inputs
        return frozenset(t for t in read - self.kept if not self.readers[t] & ~both)

    def contract(self, first: int, second: int) -> set[int]:
        """Replace two fused operators by the one that runs them back to back; this one, and all that had edges to them.

        No path may lead from one to the other through a third.
        """
        inner = self._inner(first, second)
        for known in (self._always, self._may):
            known.pop(first, None)
            known.pop(second, None)
        self.operators[first] = joined(self.operators[first], self.operators.pop(second), self.sizes, inner)
        self.order[first].extend(self.order.pop(second))
        self.outputs[first] = self.outputs[first] - inner | self.outputs.pop(second)
        self.members[first] |= self.members.pop(second)
        self.before[first] = (self.before[first] | self.before.pop(second)) & ~self.members[first]
        self.after[first] = (self.after[first] | self.after.pop(second)) & ~self.members[first]
        needs = (self.needs[first] | self.needs.pop(second)) - {first, second}
        feeds = (self.feeds[first] | self.feeds.pop(second)) - {first, second}
        for v in needs:
            self.feeds[v] -= {first, second}
        for v in feeds:
            self.needs[v] -= {first, second}
        earlier, later = union(self.before[u] for u in needs), union(self.after[w] for w in feeds)
        self.needs[first] = {u for u in needs if not self.members[u] & earlier}
        self.feeds[first] = {w for w in feeds if not self.members[w] & later}
        for v in self.needs[first]:
            self.feeds[v].add(first)
        for v in self.feeds[first]:
            self.needs[v].add(first)
        return {first, *needs, *feeds}

    def topological(self) -> tuple[int, ...]:
        """Return the fused operators in Kahn's order."""
        counts = {v: len(needs) for v, needs in self.needs.items()}
        return first_ready_first(counts, lambda v: sorted(self.feeds[v]))


def _direct_needs(graph: MemoryGraph, closure: TransitiveClosure, v: int) -> set[int]:
    """Return the operators that v needs, except those that another of these needs already."""
    earlier = union(closure.before[u] for u in bits(graph.needs[v]))
    return set(bits(graph.needs[v] & ~earlier))


_MOST_CANDIDATES = 24
"""Peak candidates of a fused operator: more, as where a thousand branches meet, would cost more than they save."""
_MOST_UNSURE = 6
"""Inputs whose death is unsure: all their subsets are tried, so there is a limit."""


def contract(graph: FusedGraph) -> None:
    """Apply the three rules, sweep by sweep, until a sweep finds nothing.

    A sweep looks at what the sweep before it changed, and at the neighbors of that: elsewhere no rule can apply that
    did not apply then.
    """
    near = set(graph.operators)
    while near:  # ends, since each sweep but the last leaves fewer operators
        changed = {each for v in sorted(near) for each in _contract_at(graph, v)} & graph.operators.keys()
        near = changed.union(*(graph.needs[v] | graph.feeds[v] for v in changed))


def _contract_at(graph: FusedGraph, v: int) -> set[int]:
    """Join fused operator v with its neighbors while a rule allows it; the fused operators that this has changed."""
    changed: set[int] = set()
    while v in graph.operators:
        pair = next((pair for pair in _edges_at(graph, v) if _may_join(graph, *pair)), None)
        if pair is None:
            break
        changed |= graph.contract(*pair)
    return changed


def _edges_at(graph: FusedGraph, v: int) -> Iterator[tuple[int, int]]:
    """Yield the edges in and out of v that no other path goes round: their ends can become one without a cycle."""
    if len(graph.feeds[v]) == 1:
        yield v, next(iter(graph.feeds[v]))
    if len(graph.needs[v]) == 1:
        yield next(iter(graph.needs[v])), v


def _may_join(graph: FusedGraph, first: int, second: int) -> bool:
    """Tell whether one of the rules holds, whichever inputs die."""
    a, b, sizes = graph.operators[first], graph.operators[second], graph.sizes
    if len(a.candidates) + len(b.candidates) > _MOST_CANDIDATES:
        return False
    rises = len(graph.feeds[first]) == 1 and a.change(sizes, graph.may_die(first) - b.inputs) >= 0
    falls = len(graph.needs[second]) == 1 and b.change(sizes, graph.always_dying(second)) <= 0
    if not (rises or falls):
        return False
    if rises and falls and _is_sure(graph, first, second):
        return True  # a hill
    sure = graph.always_dying(first) | graph.always_dying(second)
    unsure = sorted((graph.may_die(first) | graph.may_die(second)) - sure)
    if len(unsure) > _MOST_UNSURE:
        return False
    for some in _subsets(unsure):
        profile = _profile(a, b, sizes, sure | some)
        rises, falls = rises and profile.is_rising, falls and profile.is_falling
        if not (rises or falls):
            return False
    return True


def _is_sure(graph: FusedGraph, first: int, second: int) -> bool:
    """Tell whether it is known which inputs of both die, whatever ran before."""
    both = graph.operators[first].inputs & graph.operators[second].inputs
    sure = graph.always_dying(first) | graph.always_dying(second)
    return not both and graph.may_die(first) | graph.may_die(second) <= sure


def _profile(a: FusedOperator, b: FusedOperator, sizes: tuple[int, ...], dying: frozenset[int]) -> MemoryProfile:
    """Compute the effect on memory of running both, one right after the other, when the inputs in ``dying`` die."""
    early = dying - b.inputs
    between, first_need = a.change(sizes, early), a.need(sizes, early)
    last_need = between + b.need(sizes, dying)
    end = between + b.change(sizes, dying)
    return MemoryProfile(end, between, first_need, last_need, max(first_need, last_need))


def _subsets(chosen: list[int]) -> Iterator[frozenset[int]]:
    for count in range(len(chosen) + 1):
        yield from map(frozenset, combinations(chosen, count))
