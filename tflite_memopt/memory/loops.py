"""Loops in the offset problem: what is carried from iteration to iteration is one storage, and a result may run over an
image.

TFLM copies what a WHILE carries: the operator's inputs to its outputs, those to the inputs of condition and body, the
body's outputs back to the operator's outputs. It copies nothing where these tensors lie at one offset (micro/
kernel_util.cc, ``CopyTensor``; before 2026-07-20 it copied such a tensor onto itself). They may:

- an operator's output is read before every iteration and written after it; in between nobody looks at it;
- the body's input and output of a slot are the same tensor, or are not alive at the same time, or the operator that
  writes the output does so in place;
- the operator's input dies in the WHILE, or the slot never changes.

A result that DYNAMIC_UPDATE_SLICE fills, and an image of which SLICE cuts rows, may share bytes as long as no row of
the image is overwritten before its last reader has run. With w over all writes, in order:

    offset(image) - offset(result) >= max over w of  (end of w in the result) - (lowest byte of the image read after w)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..kernels.profile import KernelProfile
from ..model.analysis.lifetimes import Timeline
from ..model.analysis.loops import Integers, Loop, bytes_of_part, loops_of
from ..model.ir.model import Graph, Model, Operator, Tensor
from ..model.ir.tensors import in_head
from ..operators.reuse import KernelReuse
from ..solvers.graph.interval import intersect
from ..solvers.plan.problem import Relation
from .storage import Reuses, Storage, reuses_of, storages

Flags = npt.NDArray[np.bool_]


Carried = tuple[Tensor, ...]
"""Tensors that lie at one offset."""


def carried_in(
    graph: Graph, loops: Sequence[Loop], reuses: Reuses, timeline: Timeline
) -> tuple[tuple[Carried, ...], tuple[Carried, ...]]:
    """Return what the loops of a graph carry, and of that what never changes, so that it holds the same bytes.

    ``reuses`` are those of all graphs.
    """
    groups = _Groups()
    changing: set[Tensor] = set()
    for loop in loops:
        for slot in loop.slots:
            _carry(loop, slot, graph, reuses, timeline, groups, changing)
    for operator in timeline.executed(graph):
        whole = operator.inputs[0] if operator.name == "DYNAMIC_UPDATE_SLICE" else None
        if whole is None or not (whole in groups or operator.outputs[0] in groups or whole.is_placeholder):
            continue
        if _dies_in(whole, operator, graph, timeline) and _may_be_in_place(operator, reuses):
            groups.join(whole, operator.outputs[0])
            changing.update((whole, operator.outputs[0]))
    found = [tuple(group) for group in groups.all() if len(group) > 1]
    return tuple(found), tuple(group for group in found if changing.isdisjoint(group))


def overlaps(
    graph: Graph,
    loops: Sequence[Loop],
    carried: tuple[Sequence[Carried], Collection[Carried]],
    reuses: Reuses,
    timeline: Timeline,
) -> tuple[KernelReuse, ...]:
    """Return the permissions of loops' results to lie over their images, and over rows that are cut from those.

    ``carried``: as :func:`carried_in` returns it.
    """
    order, views = timeline.executed(graph), storages(reuse for each in reuses.values() for reuse in each)
    found: list[KernelReuse] = []
    for image, result in _images_and_results(loops, *carried):
        for read in (image, *((cut,) for cut in _cut_from(image, views))):
            distance = _distance(order, loops, read, result, graph.outputs)
            found += [KernelReuse(x, y, distance, "overlap") for x in read for y in result]
    return tuple(each for each in found if each.distance < each.output.nbytes)


def _images_and_results(
    loops: Sequence[Loop], carried: Sequence[Carried], constant: Collection[Carried]
) -> Iterator[tuple[Carried, Carried]]:
    """Pairs of what a loop is given and does not change, and what the same loop writes rows into."""
    for result in carried:
        if result in constant:
            continue
        images = {
            read
            for loop in loops
            if any(op.name == "DYNAMIC_UPDATE_SLICE" and op.outputs[0] in result for op in loop.body.operators)
            for read, made in zip(loop.body.inputs, loop.body.outputs, strict=True)
            if read is made
        }
        yield from ((each, result) for each in carried if each is not result and not images.isdisjoint(each))


def dead_in_body(loops: Iterable[Loop], reuses: Reuses, timeline: Timeline) -> tuple[KernelReuse, ...]:
    """Return the permissions of the body to use an output of the WHILE while it is dead in the body.

    What the body gets and gives back stays out: TFLM copies one slot after the other.
    """
    found = []
    for loop in loops:
        interface = {*loop.body.inputs, *loop.body.outputs}
        inner = [tensor for tensor in loop.body.tensors if tensor in timeline.tensors and tensor not in interface]
        for slot in _dead_slots(loop, timeline):
            output, ends = loop.operator.outputs[slot], (loop.body.inputs[slot], loop.body.outputs[slot])
            linked = {
                other
                for each in reuses.values()
                for reuse in each
                for end, other in ((reuse.input, reuse.output), (reuse.output, reuse.input))
                if end in ends
            }
            lives = [timeline.tensors[end] for end in ends]
            fit = (t for t in inner if t in linked or not any(intersect(timeline.tensors[t], life) for life in lives))
            found += [KernelReuse(output, tensor, -output.nbytes, "overlap") for tensor in fit]
    return tuple(found)


def _dead_slots(loop: Loop, timeline: Timeline) -> Iterator[int]:
    """Slots whose value is dead for a part of the body."""
    for slot in loop.slots:
        read, made = loop.body.inputs[slot], loop.body.outputs[slot]
        if in_head(read) and in_head(made) and timeline.tensors[read].end <= timeline.tensors[made].start:
            yield slot


def _carry(
    loop: Loop, slot: int, graph: Graph, reuses: Reuses, timeline: Timeline, groups: _Groups, changing: set[Tensor]
) -> None:
    """Put the tensors of one slot together that may lie at one offset."""
    given, output = loop.operator.required(slot), loop.operator.outputs[slot]
    read, asked, made = loop.body.inputs[slot], loop.condition.inputs[slot], loop.body.outputs[slot]
    members = [output, asked, read]
    stays = made is read
    is_new = made not in loop.body.inputs and loop.body.outputs.count(made) == 1
    if is_new and _follow_each_other(read, made, reuses, timeline):
        members.append(made)
    if stays or _dies_in(given, loop.operator, graph, timeline):
        members.append(given)
    members = [tensor for tensor in members if in_head(tensor)]
    if not stays:
        changing.update(members)
    for tensor in members[1:]:
        groups.join(members[0], tensor)


def _follow_each_other(read: Tensor, made: Tensor, reuses: Reuses, timeline: Timeline) -> bool:
    """Tell whether what an iteration gets in a slot is dead when it makes what the next iteration gets, or is
    overwritten in place.
    """
    if not (in_head(read) and in_head(made)) or made.producer is None:
        return False
    if timeline.tensors[read].end <= timeline.tensors[made].start:
        return True
    is_last = timeline.tensors[read].end == timeline.spans[made.producer].end
    in_place = (s for s in reuses.get(made.producer, ()) if s.kind == "in-place")
    return is_last and any(s.input is read and s.output is made and s.distance == 0 for s in in_place)


def _dies_in(tensor: Tensor, operator: Operator, graph: Graph, timeline: Timeline) -> bool:
    """Tell whether an operator reads a tensor once, and is the last one that does."""
    if tensor in graph.outputs or not in_head(tensor) or sum(use.operator is operator for use in tensor.uses) != 1:
        return False
    return timeline.tensors[tensor].end == timeline.spans[operator].end


def _may_be_in_place(operator: Operator, reuses: Reuses) -> bool:
    """DYNAMIC_UPDATE_SLICE into a placeholder is in place wherever it is in place at all."""
    whole = operator.inputs[0]
    if whole is not None and whole.is_placeholder:
        return True
    return any(reuse.kind == "in-place" and reuse.input is whole for reuse in reuses.get(operator, ()))


def _cut_from(image: Carried, views: Iterable[Storage]) -> list[Tensor]:
    """Return the views of an image that lie at another offset."""
    members = next((storage for storage in views if any(tensor in image for tensor in storage)), {})
    return [tensor for tensor in members if tensor not in image]


class _Access(NamedTuple):
    """What an operator does to an image or to a result, in the order of running.

    of the image     it reads or writes bytes from ``at`` on
    of the result    it writes bytes before ``at``

    What writes the image ends the life of the bytes of the result there, and so counts like a read. Of an operator in a
    loop ``at`` may differ by iteration.
    """

    is_of_result: bool
    at: int | Integers


_READS_ALL = _Access(False, 0)
_Part = tuple[int | Integers, int | Integers]
"""The first byte and the end of what an operator reads or writes."""


def _written(output: Tensor, result: Collection[Tensor], low: int | Integers, end: int | Integers) -> _Access:
    """The access that writes bytes [low, end) of an output, which is of the result or else of the image."""
    return _Access(True, end) if output in result else _Access(False, low)


def _distance(
    order: Sequence[Operator], loops: Sequence[Loop], image: Carried, result: Carried, returned: Collection[Tensor]
) -> int:
    """The least ``offset(image) - offset(result)`` in bytes at which nothing is overwritten that is still read.

    The formula of the module: ``lowest`` is the lowest byte of the image that is read behind each access, which is all
    of it where the model returns the image, and its size where nothing reads on.
    """
    columns = list(_accesses(order, {loop.operator: loop for loop in loops}, set(image), set(result)))
    size = max(tensor.nbytes for tensor in image)
    is_of_result = np.concatenate([np.zeros(0, bool), *(each for each, _ in columns)])
    at = np.concatenate([np.zeros(0, np.int64), *(each for _, each in columns)])
    behind = 0 if any(tensor in returned for tensor in image) else size
    return least_distance(is_of_result, at, size, behind)


def least_distance(is_of_result: Flags, at: Integers, size: int, behind: int) -> int:
    """Return the least distance for accesses to an image of ``size`` bytes and to a result, in the order of running.

    ``is_of_result[k]``: access k writes the result before byte ``at[k]``; otherwise it is of the image from there on.
    ``behind``: the lowest byte of the image that is read after all of them.
    """
    reads = np.append(np.where(is_of_result, size, at), behind)
    lowest = np.minimum.accumulate(reads[::-1])[-2::-1]
    apart = (at - lowest)[is_of_result & (lowest < size)]
    return int(apart.max(initial=-size))


def _accesses(
    order: Iterable[Operator], loops: Mapping[Operator, Loop], image: set[Tensor], result: set[Tensor]
) -> Iterator[tuple[Flags, Integers]]:
    """All accesses to two storages, in order: whether they are of the result, and ``at``.

    A loop whose iterations are not known reads and writes all of both.
    """
    size = max(tensor.nbytes for tensor in result)
    both = image | result
    touching = {use.operator for tensor in both for use in tensor.uses}.union(loops, (each.producer for each in both))
    for operator in order:
        if operator not in touching:
            continue
        loop = loops.get(operator)
        if loop is None:
            yield _repeated(1, _of_one(operator, bytes_of_part(operator), image, result))
        elif loop.iterations is None:
            yield _repeated(1, (_READS_ALL, _Access(True, size)))
        else:
            # TFLM copies what the loop is given.
            pairs = zip(loop.operator.inputs, loop.operator.outputs, strict=True)
            yield _repeated(1, (_written(to, result, 0, size) for of, to in pairs if to in both and of not in both))
            yield _repeated(loop.iterations, _of_iteration(loop, image, result))


def _repeated(iterations: int, accesses: Iterable[_Access]) -> tuple[Flags, Integers]:
    """The accesses of all iterations, one iteration after the other."""
    every = list(accesses)
    table = np.empty((iterations, len(every)), np.int64)
    for column, access in enumerate(every):
        table[:, column] = access.at
    return np.tile(np.asarray([access.is_of_result for access in every], bool), iterations), table.ravel()


def _of_iteration(loop: Loop, image: set[Tensor], result: set[Tensor]) -> Iterator[_Access]:
    """Those of an iteration of a loop."""
    both, size = image | result, max(tensor.nbytes for tensor in result)
    for operator in (*loop.condition.operators, *loop.body.operators):
        if not both.isdisjoint((*operator.inputs, *operator.outputs)):
            part = loop.parts[operator] if operator in loop.parts else bytes_of_part(operator)
            yield from _of_one(operator, part, image, result)
    yield from (_written(output, result, 0, size) for output in _copied_back(loop, both))


def _copied_back(loop: Loop, group: set[Tensor]) -> Iterator[Tensor]:
    """Outputs of the WHILE in a group that TFLM writes after every iteration, from a tensor that is not in it."""
    for slot in loop.slots:
        output, read, made = loop.operator.outputs[slot], loop.body.inputs[slot], loop.body.outputs[slot]
        if output in group and not (made in group and (made is read or _is_in_place(made, group))):
            yield output


def _is_in_place(tensor: Tensor, group: Collection[Tensor]) -> bool:
    """Tell whether DYNAMIC_UPDATE_SLICE makes the tensor out of one of its group."""
    producer = tensor.producer
    return producer is not None and producer.name == "DYNAMIC_UPDATE_SLICE" and producer.inputs[0] in group


def _of_one(operator: Operator, part: _Part | None, image: set[Tensor], result: set[Tensor]) -> Iterator[_Access]:
    """``part``: the bytes of its whole that the operator reads or writes, where they are known."""
    for slot, tensor in enumerate(operator.inputs):
        if tensor is None or tensor not in image:
            continue
        if slot == 0 and _is_in_place(operator.outputs[0], image):
            continue  # copied onto itself
        is_cut = slot == 0 and operator.name == "SLICE"
        yield _Access(False, part[0]) if is_cut and part is not None else _READS_ALL
    for output in operator.outputs:
        if output in image or output in result:
            is_updated = part is not None and _is_in_place(output, image | result)
            low, end = part if is_updated and part is not None else (0, output.nbytes)
            yield _written(output, result, low, end)


@dataclass(frozen=True)
class LoopLayout:
    """The items and relations that loops add to the offset problem of a model.

    ``reuses``: those of the loops' subgraphs, and views of what never changes. ``returned``: what these graphs return.
    """

    loops: tuple[Loop, ...]
    carried: tuple[Carried, ...]
    reuses: Reuses
    over: tuple[KernelReuse, ...]
    dead_in_body: tuple[KernelReuse, ...]
    returned: tuple[Tensor, ...]

    def relations(self, numbers: Mapping[Tensor, int]) -> Iterator[Relation]:
        """Relations between items by number."""
        for group in self.carried:
            for a, b in combinations(group, 2):
                yield Relation(numbers[a], numbers[b], 0, exact=True)
        for each in (*self.over, *self.dead_in_body):
            yield Relation(numbers[each.input], numbers[each.output], each.distance)


_NO_LOOPS = LoopLayout((), (), {}, (), (), ())


def loop_layout(model: Model, reuses: Reuses, timeline: Timeline, profile: KernelProfile) -> LoopLayout:
    """The loops of a model; ``reuses`` are those of its main graph."""
    loops = loops_of(model)
    if not loops:
        return _NO_LOOPS
    graphs = [graph for loop in loops for graph in (loop.condition, loop.body)]
    inner = {op: found for graph in graphs for op, found in reuses_of(graph, timeline, profile).items()}
    carried, constant = carried_in(model.main, loops, {**reuses, **inner}, timeline)
    # Whatever is cut out of a tensor that never changes lies on all that carry it.
    views = (KernelReuse(other, first, 0, "view") for first, *others in constant for other in others)
    own = {**inner, loops[0].operator: tuple(views)}
    over = overlaps(model.main, loops, (carried, constant), {**reuses, **own}, timeline)
    returned = tuple(tensor for graph in graphs for tensor in graph.outputs)
    return LoopLayout(loops, carried, own, over, dead_in_body(loops, inner, timeline), returned)


class _Groups:
    """Tensors that are put together, in the order in which they came."""

    def __init__(self) -> None:
        self._group: dict[Tensor, dict[Tensor, None]] = {}

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor in self._group

    def join(self, a: Tensor, b: Tensor) -> None:
        """Make the groups of two tensors one."""
        joined = self._group.get(a, {a: None}) | self._group.get(b, {b: None})
        self._group.update(dict.fromkeys(joined, joined))

    def all(self) -> list[dict[Tensor, None]]:
        """Every group once."""
        return list({id(group): group for group in self._group.values()}.values())
