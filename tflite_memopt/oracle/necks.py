"""Necks of a graph: steps after which little is alive. There a quick search lets regions of stripes end.

alive after step    0: 3200   1: 6400   2: 9600   3: 9600   4: 1600   5: 3200
needs of step 3: 19200        a region that is to lower it ends at step 4, the first that leaves less than half of
                              that alive; step 5 leaves more alive than step 4
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..graph.alignment import aligned
from ..ir.head import in_head
from ..ir.model import Graph

_HIGH = 0.4
"""A step that needs more than this part of the largest need is worth a region."""
_LOW = 0.5
"""Its region ends where at most this part of its need is left alive, and starts where no more was alive before."""
_LOWEST = 0.4
"""First of all it ends where at most this part of the largest need is left: two peaks then have one region each."""
_WHOLE = 0.125
"""Where at most this part of the largest need is alive no region goes on: what is alive there stays whole."""


@dataclass(frozen=True)
class Necks:
    """``starts`` and ``exits``: steps at which a region may start and end; ``whole``: names of tensors inside none.

    ``best_exits``: of each step that needs much the exit that is to be looked at first.
    """

    starts: frozenset[int]
    best_exits: frozenset[int]
    exits: frozenset[int]
    whole: frozenset[str]


def necks_of(graph: Graph) -> Necks:
    """The necks of a graph in its own order. Scratch, and what kernels let tensors share, are left out."""
    needs, alive = _bytes_alive(graph)
    largest = max(needs, default=0)
    high = [(step, need) for step, need in enumerate(needs) if need > _HIGH * largest]
    ends = [list(_ends(step, _LOW * need, alive)) for step, need in high]
    exits = {end for each in ends for end in each}
    best = {next((end for end in each if alive[end] <= _LOWEST * largest), each[-1]) for each in ends if each}
    starts = {0, *(step + 1 for step, nbytes in enumerate(alive[:-1]) if nbytes <= _LOW * largest)}
    narrow = (step for step, nbytes in enumerate(alive) if nbytes <= _WHOLE * largest)
    whole = {tensor.name for step in narrow for tensor in graph.operators[step].outputs}
    return Necks(frozenset(starts), frozenset(best), frozenset(exits), frozenset(whole))


def _ends(step: int, most: float, alive: Sequence[int]) -> Iterator[int]:
    """From a step on, those that leave so many bytes alive at most, and less than all before them."""
    least = most + 1
    for end in range(step, len(alive)):
        if alive[end] < least:
            least = alive[end]
            yield end


def _bytes_alive(graph: Graph) -> tuple[list[int], list[int]]:
    """(bytes that are alive while each step runs, and those that are after it)."""
    dies = {tensor: step for step, each in enumerate(graph.operators) for tensor in each.present_inputs()}
    dies |= dict.fromkeys(graph.outputs, len(graph.operators))
    now = sum(aligned(tensor.nbytes) for tensor in graph.inputs if tensor in dies)
    needs, after = [], []
    for step, operator in enumerate(graph.operators):
        now += sum(aligned(tensor.nbytes) for tensor in operator.outputs if in_head(tensor))
        needs.append(now)
        touched = dict.fromkeys((*operator.present_inputs(), *operator.outputs))
        now -= sum(aligned(t.nbytes) for t in touched if in_head(t) and dies.get(t, step) == step)
        after.append(now)
    return needs, after
