"""Exact reductions: operators that may run back to back in some optimal order become one fused operator.

These are the fusion theorems of ``graph/fusion.py`` on two operators, first -> second, of which the one waits for the
other alone:

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

from collections.abc import Iterator
from itertools import combinations

from ...graph.fusion import MemoryProfile
from .fused_graph import FusedGraph
from .fused_operator import FusedOperator

_MOST_SWEEPS = 50
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
    for _ in range(_MOST_SWEEPS):
        changed = {each for v in sorted(near) for each in _contract_at(graph, v)} & graph.operators.keys()
        near = changed.union(*(graph.needs[v] | graph.feeds[v] for v in changed))
        if not near:
            return


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
    """Edges in and out of v that no other path goes round: their ends can become one without a cycle."""
    if len(graph.feeds[v]) == 1:
        yield v, next(iter(graph.feeds[v]))
    if len(graph.needs[v]) == 1:
        yield next(iter(graph.needs[v])), v


def _may_join(graph: FusedGraph, first: int, second: int) -> bool:
    """Whether one of the rules holds, whichever inputs die."""
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
    """Whether it is known which inputs of both die, whatever ran before."""
    both = graph.operators[first].inputs & graph.operators[second].inputs
    sure = graph.always_dying(first) | graph.always_dying(second)
    return not both and graph.may_die(first) | graph.may_die(second) <= sure


def _profile(a: FusedOperator, b: FusedOperator, sizes: tuple[int, ...], dying: frozenset[int]) -> MemoryProfile:
    """What running both, one right after the other, does to memory when the inputs in ``dying`` die."""
    early = dying - b.inputs
    between, first_need = a.change(sizes, early), a.need(sizes, early)
    last_need = between + b.need(sizes, dying)
    end = between + b.change(sizes, dying)
    return MemoryProfile(end, between, first_need, last_need, max(first_need, last_need))


def _subsets(chosen: list[int]) -> Iterator[frozenset[int]]:
    for count in range(len(chosen) + 1):
        yield from map(frozenset, combinations(chosen, count))
