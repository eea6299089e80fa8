"""Fusion as printed: Algorithm 1 on isolated sub-graphs, by Theorems IV.1 and IV.2.

                t0                      one tensor comes in, and only operators of the sub-graph read it
               /  \\
              a    b                    breadth first from its readers; whenever a single operator is waiting,
               \\  /                     all before it is a candidate
                c
                |  t1                   one tensor goes out

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization", Definition 4 and
section IV.B. Of the operators that wait, the first is taken whose own inputs are all made: the paper says "breadth
first" only, and without this the ADD of a residual block would come before the block.

As printed it can lose the optimum: the theorems look at half-done states of one inner order, and another one may pass
through a lighter state. What orders models here looks at all of them (``graph/dependency_graph.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflite_memopt.published.ilp.closed_set import ClosedSet, InnerOrder, inner_order
from tflite_memopt.published.ilp.fusion import MAX_SIZE, FusedProblem, fused_by
from tflite_memopt.solvers.graph.dependency_graph import TransitiveClosure, bits, set_of, transitive_closure, union
from tflite_memopt.solvers.schedule.problem import MemoryGraph, ScheduleProblem, memory_graph


def fuse_as_printed(problem: ScheduleProblem, max_size: int = MAX_SIZE) -> FusedProblem:
    """Algorithm 1, until nothing more can be fused. ``max_size`` is the paper's M, for which it gives no value.

    A candidate that must not be fused grows further. (To the letter the walk from a tensor ends with its first one.)
    """
    return fused_by(_fusable, problem, max_size)


def _fusable(problem: ScheduleProblem, max_size: int) -> list[InnerOrder]:
    """One round over the tensors: disjoint sub-graphs that can be fused."""
    graph = memory_graph(problem)
    closure = transitive_closure(graph)
    taken, found = 0, list[InnerOrder]()
    for tensor in range(len(problem.sizes)):
        for members in grown_from(graph, closure, tensor, max_size):
            if members & taken:
                break
            inner = _fusable_order(graph, closure, members)
            if inner:
                found.append(inner)
                taken |= members
                break
    return found


def grown_from(graph: MemoryGraph, closure: TransitiveClosure, tensor: int, max_size: int) -> Iterator[int]:
    """The candidates that grow from a tensor's readers, breadth first, with ``max_size`` operators at most."""
    queue = list(bits(graph.readers[tensor]))
    members = 0
    while queue and members.bit_count() < max_size:
        waiting = set_of(queue)
        v = next(v for v in queue if not closure.before[v] & waiting)
        queue.remove(v)
        members |= 1 << v
        if members.bit_count() > 1 and not queue:
            yield members
        queue += [w for w in bits(graph.feeds[v]) if w not in queue]


def _fusable_order(graph: MemoryGraph, closure: TransitiveClosure, members: int) -> InnerOrder | None:
    """The order with the smallest peak of an isolated sub-graph that one of the theorems allows to fuse."""
    if not is_isolated(graph, members):
        return None
    chosen = _surrounded(closure, members)
    inner = inner_order(graph, chosen)
    return inner if inner and _can_be_fused(graph, chosen, inner) else None


def is_isolated(graph: MemoryGraph, members: int) -> bool:
    """Definition 4: one tensor comes in, one goes out, and nobody outside reads the one that comes in."""
    steps = [graph.problem.steps[v] for v in bits(members)]
    written = {t for step in steps for t in step.outputs}
    entering = {t for step in steps for t in step.inputs} - written
    leaving = {t for t in written if _is_used_outside(graph, t, members)}
    if len(entering) != 1 or len(leaving) != 1 or any(step.after for step in steps):
        return False
    return not any(_is_used_outside(graph, t, members) for t in entering)


def _is_used_outside(graph: MemoryGraph, tensor: int, members: int) -> bool:
    return graph.kept[tensor] or bool(graph.readers[tensor] & ~members)


def _surrounded(closure: TransitiveClosure, members: int) -> ClosedSet:
    before = union(closure.before[v] for v in bits(members)) & ~members
    after = union(closure.after[v] for v in bits(members)) & ~members
    return ClosedSet(members, before, after)


def _can_be_fused(graph: MemoryGraph, chosen: ClosedSet, inner: InnerOrder) -> bool:
    """Theorem IV.1 on a chain, IV.2 on anything, along the inner order with the smallest peak."""
    executed, alive = chosen.before, 0
    stable, transient = list[int](), [0]
    for v in inner.order:
        need, alive = graph.run(executed, alive, v)
        executed |= 1 << v
        stable.append(need)
        transient.append(alive)
    return is_hill(transient) or (_is_chain(graph, chosen.members) and is_monotonic(transient, stable))


def is_monotonic(transient: Sequence[int], stable: Sequence[int]) -> bool:
    """Theorem IV.1: (11) and (12), or (13) and (14). Bytes: ``transient[0]`` before the first operator."""
    rising = all(sorted(each) == list(each) for each in (transient, stable))
    return rising or all(sorted(each, reverse=True) == list(each) for each in (transient, stable))


def is_hill(transient: Sequence[int]) -> bool:
    """Theorem IV.2: (15) and (16)."""
    return all(bytes_alive >= max(transient[0], transient[-1]) for bytes_alive in transient[1:-1])


def _is_chain(graph: MemoryGraph, members: int) -> bool:
    """Whether each operator but the last feeds exactly one of the others, and each but the first needs one."""
    feeds = sorted((graph.feeds[v] & members).bit_count() for v in bits(members))
    needs = sorted((graph.needs[v] & members).bit_count() for v in bits(members))
    return feeds == needs == [0, *[1] * (len(feeds) - 1)]
