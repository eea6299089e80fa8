"""What the kernels of a profile permit in a model: for the planner as relations, for the scheduler as storages.

A *storage* is a run of bytes that tensors are views of; where a tensor lies in it is a fixed distance. Views of one
storage hold the same bytes wherever they overlap, so they may do so whether or not an operator links them directly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from ..analysis.lifetimes import Timeline
from ..graph.alignment import aligned
from ..graph.interval import intersect
from ..ir.model import Graph, Operator, Tensor
from ..kernels.profile import KernelProfile
from ..kernels.relations import KernelReuse
from ..plan.problem import Item, Relation
from .storages import storages


def reuses_of(graph: Graph, timeline: Timeline, profile: KernelProfile) -> dict[Operator, tuple[KernelReuse, ...]]:
    """What each operator permits between two tensors of the head, whatever the order."""
    found = {}
    for operator in graph.operators:
        reuses = profile.relations(operator)
        kept = tuple(s for s in reuses if s.input in timeline.tensors and s.output in timeline.tensors)
        if kept:
            found[operator] = kept
    return found


def relations_of(
    reuses: Mapping[Operator, tuple[KernelReuse, ...]],
    timeline: Timeline,
    numbers: Mapping[Tensor, int],
    returned: Collection[Tensor],
) -> tuple[Relation, ...]:
    """The permissions that hold in the present order, between items by number; ``returned`` are the graph's outputs."""
    found = dict.fromkeys(_views(reuses, timeline, numbers))
    for operator, each in reuses.items():
        for reuse in each:
            if reuse.kind == "view" or reuse.input in returned:
                continue
            if _overwrites_the_dead(operator, reuse, timeline):
                found[Relation(numbers[reuse.input], numbers[reuse.output], reuse.distance, reuse.exact)] = None
    return tuple(found)


def _views(
    reuses: Mapping[Operator, tuple[KernelReuse, ...]], timeline: Timeline, numbers: Mapping[Tensor, int]
) -> Iterable[Relation]:
    """All pairs of a storage that are alive together and overlap in it."""
    by_storage: dict[Tensor, list[tuple[int, Tensor]]] = {}
    for tensor, place in storages(reuse for each in reuses.values() for reuse in each).items():
        by_storage.setdefault(place.storage, []).append((place.start, tensor))
    for members in by_storage.values():
        for (a_start, a), (b_start, b) in combinations(members, 2):
            overlap = a_start < b_start + aligned(b.nbytes) and b_start < a_start + aligned(a.nbytes)
            if overlap and intersect(timeline.tensors[a], timeline.tensors[b]):
                yield Relation(numbers[a], numbers[b], a_start - b_start, exact=True)


def _overwrites_the_dead(operator: Operator, reuse: KernelReuse, timeline: Timeline) -> bool:
    """Whether the input has its last reader in the operator, and the output is born there.

    TFLM's lifetimes do not tell a reader in the last operator from the graph's return: outputs are left out before.
    """
    span = timeline.spans.get(operator)
    if span is None or reuse.input is reuse.output:
        return False
    return timeline.tensors[reuse.input].end == span.end and timeline.tensors[reuse.output].start == span.start


def shared_by_npu(tensors: Sequence[Tensor], items: Sequence[Item]) -> Iterator[Relation]:
    """What an NPU's compiler has put onto one another: it knows which bytes the NPU touches, and when."""
    fixed = [number for number, tensor in enumerate(tensors) if tensor.fixed_offset is not None]
    for first, second in combinations(fixed, 2):
        a, b = items[first], items[second]
        assert a.offset is not None
        assert b.offset is not None
        if a.offset < b.offset + b.size and b.offset < a.offset + a.size and intersect(a, b):
            yield Relation(first, second, a.offset - b.offset, exact=True)


def saved_bytes(reuse: KernelReuse) -> int:
    """Bytes that an input and an output save at best when they share as permitted; tensors are aligned to 16."""
    first, second = aligned(reuse.input.nbytes), aligned(reuse.output.nbytes)
    least = aligned(reuse.distance)
    # Above the distance, the best place for the input is inside the output, or as near to that as allowed.
    difference = least if reuse.exact else max(least, min(0, second - first))
    if not reuse.exact and difference < 0 <= second - first:
        difference = 0
    span = max(second, difference + first) - min(0, difference)
    return max(0, first + second - span)
