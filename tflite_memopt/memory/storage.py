"""Tensors as bytes: *storages*, that tensors are views of, and *atoms*, the bytes of one that live and die together.

Where a tensor lies in its storage is a fixed distance. Views of one storage hold the same bytes wherever they overlap,
so they may do so whether or not an operator links them directly.

For the scheduler a storage is cut at all ends of its tensors. Each piece is alive from the operator that first writes
it to the last reader of any tensor that lies on it, so that it is an ordinary tensor to a scheduler, and bytes that
several tensors share are counted once.

The kernels of a profile permit more: for the planner as relations, for the scheduler as storages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

from ..kernels.profile import KernelProfile
from ..model.analysis.lifetimes import Timeline
from ..model.ir.check import misfit
from ..model.ir.model import Graph, Operator, Tensor
from ..operators.reuse import KernelReuse
from ..solvers.graph.alignment import ARENA_ALIGNMENT, aligned
from ..solvers.graph.interval import intersect
from ..solvers.plan.problem import Item, PlanProblem, Relation, most_shared

Reuses = Mapping[Operator, tuple[KernelReuse, ...]]
"""Where outputs may lie on inputs, by operator."""
Storage = Mapping[Tensor, int]
"""Tensors that are views of the same bytes, each with the position of its first byte among them."""


def storages(reuses: Iterable[KernelReuse]) -> list[Storage]:
    """Return the storages of all tensors that are a view or have one.

    A view is left out where the bytes would contradict another one's: the parts of two concatenations that share an
    input lie at the same place and differ.
    """
    home: dict[Tensor, dict[Tensor, int]] = {}
    for reuse in sorted(reuses, key=_is_cut):
        if reuse.kind != "view":
            continue
        moved, kept = (home.setdefault(tensor, {tensor: 0}) for tensor in (reuse.input, reuse.output))
        if kept is moved:
            continue
        shift = kept[reuse.output] + reuse.distance - moved[reuse.input]
        theirs = {tensor: (start + shift, tensor.nbytes) for tensor, start in moved.items()}
        ours = {tensor: (start, tensor.nbytes) for tensor, start in kept.items()}
        linked = _common(theirs[reuse.input], ours[reuse.output])
        beyond = ([at for at in each.values() if not _within(_common(at, at), linked)] for each in (theirs, ours))
        if any(not _within(_common(x, y), linked) for x, y in product(*beyond)):
            continue
        kept.update((tensor, start) for tensor, (start, _) in theirs.items())
        home.update(dict.fromkeys(theirs, kept))
    found: dict[int, dict[Tensor, int]] = {}
    for tensor, storage in home.items():  # in the order of the reuses
        found.setdefault(id(storage), {})[tensor] = storage[tensor]
    return [*found.values()]


def _common(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """Half-open range that two (start, size) have in common; empty when its end is not above its start."""
    return max(first[0], second[0]), min(first[0] + first[1], second[0] + second[1])


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return inner[1] <= inner[0] or (outer[0] <= inner[0] and inner[1] <= outer[1])


def _is_cut(reuse: KernelReuse) -> bool:
    """Tell whether the output is a part of the input.

    Where not all views can hold, those that join parts come first: a part that is copied out of a larger tensor is
    alive with that alone, parts that are copied into one are all alive with it at once.
    """
    return reuse.input.nbytes > reuse.output.nbytes


@dataclass(frozen=True)
class Atoms:
    """``sizes[a]`` in bytes; ``of[t]``: the atoms that tensor t lies on; ``source[a]``: the tensor that fills it."""

    sizes: tuple[int, ...]
    of: Mapping[Tensor, tuple[int, ...]]
    source: tuple[Tensor, ...]


def cut_into_atoms(tensors: Sequence[Tensor], reuses: Reuses) -> Atoms:
    """Return the atoms of the head's tensors under the views among ``reuses``."""
    views = [reuse for each in reuses.values() for reuse in each if reuse.kind == "view"]
    place = {tensor: (at, start) for at, each in enumerate(storages(views)) for tensor, start in each.items()}
    copied_from = {(reuse.output, reuse.input) for reuse in views if _is_kept(place, reuse)}
    sizes: list[int] = []
    source: list[Tensor] = []
    of: dict[Tensor, list[int]] = {tensor: [] for tensor in tensors}
    by_storage: dict[int | Tensor, list[tuple[int, Tensor]]] = {}
    for tensor in tensors:
        storage, start = place.get(tensor, (tensor, 0))
        by_storage.setdefault(storage, []).append((start, tensor))
    for members in by_storage.values():
        ends = sorted({end for start, t in members for end in (start, start + aligned(t.nbytes))})
        for low, high in pairwise(ends):
            covering = [t for start, t in members if start <= low and high <= start + aligned(t.nbytes)]
            if not covering:
                continue
            for tensor in covering:
                of[tensor].append(len(sizes))
            sizes.append(high - low)
            source.append(_source(covering, copied_from))
    return Atoms(tuple(sizes), {tensor: tuple(found) for tensor, found in of.items()}, tuple(source))


def _is_kept(place: Mapping[Tensor, tuple[int, int]], reuse: KernelReuse) -> bool:
    """Tell whether the storages were laid out as this view would have it."""
    (storage, start), (other, other_start) = place[reuse.input], place[reuse.output]
    return storage == other and start - other_start == reuse.distance


def _source(covering: Sequence[Tensor], copied_from: set[tuple[Tensor, Tensor]]) -> Tensor:
    """Return the tensor that all others copy, directly or in steps."""
    return next(t for t in covering if not any((t, other) in copied_from for other in covering))


def reuses_of(graph: Graph, timeline: Timeline, profile: KernelProfile) -> dict[Operator, tuple[KernelReuse, ...]]:
    """Return the permissions of each operator between two tensors of the head, whatever the order.

    Raises ModelFormatError for an operator that lacks an input or a dimension that its kind has.
    """
    found = {}
    for operator in graph.operators:
        try:
            reuses = profile.relations(operator)
        except IndexError as error:
            raise misfit(operator) from error
        kept = tuple(s for s in reuses if s.input in timeline.tensors and s.output in timeline.tensors)
        if kept:
            found[operator] = kept
    return found


def relations_of(
    reuses: Reuses, timeline: Timeline, numbers: Mapping[Tensor, int], returned: Collection[Tensor]
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


def _views(reuses: Reuses, timeline: Timeline, numbers: Mapping[Tensor, int]) -> Iterable[Relation]:
    """Return all pairs of a storage that are alive together and overlap in it."""
    for storage in storages(reuse for each in reuses.values() for reuse in each):
        for (a, a_start), (b, b_start) in combinations(storage.items(), 2):
            overlap = a_start < b_start + aligned(b.nbytes) and b_start < a_start + aligned(a.nbytes)
            if overlap and intersect(timeline.tensors[a], timeline.tensors[b]):
                yield Relation(numbers[a], numbers[b], a_start - b_start, exact=True)


def _overwrites_the_dead(operator: Operator, reuse: KernelReuse, timeline: Timeline) -> bool:
    """Tell whether the input has its last reader in the operator, and the output is born there.

    TFLM's lifetimes do not tell a reader in the last operator from the graph's return: outputs are left out before.
    """
    span = timeline.spans.get(operator)
    if span is None or reuse.input is reuse.output:
        return False
    return timeline.tensors[reuse.input].end == span.end and timeline.tensors[reuse.output].start == span.start


def shared_by_npu(tensors: Sequence[Tensor], items: Sequence[Item]) -> Iterator[Relation]:
    """Return the tensors that an NPU's compiler has put onto one another: it knows which bytes the NPU touches, and
    when.
    """
    fixed = [number for number, tensor in enumerate(tensors) if tensor.fixed_offset is not None]
    for first, second in combinations(fixed, 2):
        a, b = items[first], items[second]
        assert a.offset is not None
        assert b.offset is not None
        if a.offset < b.offset + b.size and b.offset < a.offset + a.size and intersect(a, b):
            yield Relation(first, second, a.offset - b.offset, exact=True)


def saved_bytes(reuse: KernelReuse) -> int:
    """Bytes that an input and an output save at best when they share as permitted; tensors are aligned to 16."""
    items = tuple(Item(aligned(tensor.nbytes), 0, 1) for tensor in (reuse.input, reuse.output))
    forbidden = PlanProblem(items, (Relation(0, 1, reuse.distance, reuse.exact),)).permissions.get(0, {}).get(1)
    return 0 if forbidden is None else most_shared(items[0].size, items[1].size, forbidden, ARENA_ALIGNMENT)


def bytes_in_common(reuse: KernelReuse, offsets: Mapping[Tensor, int]) -> int:
    """Return the bytes that an input and an output share at these offsets; at most 0 where they share none."""
    first, second = offsets[reuse.input], offsets[reuse.output]
    return min(first + reuse.input.nbytes, second + reuse.output.nbytes) - max(first, second)
