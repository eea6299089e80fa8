"""Models that show inner values as further outputs, those in the bodies of loops among them (``loop_logs.py``).

TFLM gives back outputs only. *Exposed*: every tensor is an output, so that all live to the end and none shares
memory. *Snapshots*: the planned model, every offset as it is, with a copy of each tensor taken just before its last
reader runs (before its first one, where rows are given up once they are read); the copies lie above the arena and
disturb nothing. What the plan does wrong to a tensor is in its copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..analysis.placeholders import spent_in_rows
from ..graph.alignment import aligned
from ..io import offline_plan
from ..io.reader import read_model
from ..io.writer import write_model
from ..ir.copying import copy_model
from ..ir.editor import Editor
from ..ir.head import in_head
from ..ir.model import Model
from .adapter import LARGEST_ARENA
from .loop_logs import add_logs, first_readers, last_readers, log_bytes
from .trace import computed_tensors

MOST_BYTES = 256 << 20
"""Of tensors that one such model shows, unless asked otherwise; what is more is shown by another one."""


@dataclass(frozen=True)
class Exposure:
    """A model, and which of its outputs shows which tensor of the model that it was made of: position -> position.

    Positions of tensors count those of all subgraphs, in the order of the file. What shows a tensor of a loop's body
    has its values in all turns, one after the other along the first axis.
    The first ``outputs`` outputs are those of that model. ``extra_bytes`` is what its arena needs on top of what any
    plan of that model needs.
    """

    model: bytes
    tensors: dict[int, int]
    extra_bytes: int
    outputs: int

    def arena_in(self, arena_bytes: int) -> int:
        """The arena to give it where ``arena_bytes`` is enough for that model."""
        return LARGEST_ARENA if arena_bytes == LARGEST_ARENA else arena_bytes + self.extra_bytes


def exposed(data: bytes, most_bytes: int = MOST_BYTES) -> list[Exposure]:
    """The model without a plan, and with its tensors as outputs, at most ``most_bytes`` of them or one at a time."""
    model = read_model(data)
    return [_exposed(copy_model(model), chosen) for chosen in _groups(model, most_bytes)]


def snapshots(data: bytes, head: int, most_bytes: int = MOST_BYTES) -> list[Exposure]:
    """The model with its plan, and with copies of its tensors, at most ``most_bytes`` of them or one at a time.

    ``head``: bytes of TFLM's head without them.
    """
    model = read_model(data)
    return [_snapshot(copy_model(model), chosen, aligned(head)) for chosen in _groups(model, most_bytes)]


def bytes_to_show(model: Model) -> dict[int, int]:
    """Every tensor that can be shown, by its position, with the bytes that this takes."""
    tensors = model.main.tensors
    shown = {index: tensors[index].nbytes for index in computed_tensors(model.main) if in_head(tensors[index])}
    return shown | log_bytes(model)


def _groups(model: Model, most_bytes: int) -> Iterator[list[int]]:
    """The tensors to show, in as few models as their bytes allow; at least one model, if only for the outputs."""
    return _grouped(bytes_to_show(model).items(), most_bytes)


def _grouped(sizes: Iterable[tuple[int, int]], most_bytes: int) -> Iterator[list[int]]:
    """Positions, given with their bytes, in groups."""
    group: list[int] = []
    room = most_bytes
    for index, nbytes in sizes:
        size = aligned(nbytes)
        if group and size > room:
            yield group
            group, room = [], most_bytes
        group.append(index)
        room -= size
    yield group


def _exposed(model: Model, chosen: Sequence[int]) -> Exposure:
    graph = model.main
    offline_plan.detach(model)
    own, count = set(graph.outputs), len(graph.outputs)
    chosen, inner = _split(model, chosen)
    logs = add_logs(model, inner, 0)
    graph.outputs = (*graph.outputs, *(graph.tensors[index] for index in chosen if graph.tensors[index] not in own))
    places = {tensor: position for position, tensor in enumerate(graph.outputs)}
    model.signatures = None
    shown = {places[graph.tensors[index]]: index for index in chosen}
    shown |= {places[tensor]: place for place, tensor in logs.outputs.items()}
    extra = sum(aligned(graph.tensors[index].nbytes) for index in chosen) + logs.extra_bytes
    return Exposure(write_model(model), shown, extra, count)


def _split(model: Model, chosen: Sequence[int]) -> tuple[list[int], list[int]]:
    """Positions of tensors of the entry graph, and those in loops."""
    count = len(model.main.tensors)
    return [index for index in chosen if index < count], [index for index in chosen if index >= count]


def _snapshot(model: Model, chosen: Sequence[int], above: int) -> Exposure:
    graph = model.main
    planned = dict(offline_plan.decode(model) or {})
    count = len(graph.outputs)
    chosen, inner = _split(model, chosen)
    logs = add_logs(model, inner, above)
    planned |= logs.offsets
    places = {tensor: position for position, tensor in enumerate(graph.outputs)}
    shown, top = {places[tensor]: place for place, tensor in logs.outputs.items()}, logs.top
    spent, first = spent_in_rows(model), first_readers(graph)
    readers = last_readers(graph) | {tensor: first[tensor] for tensor in spent}
    for index in chosen:
        tensor = graph.tensors[index]
        if tensor in graph.outputs or tensor not in readers:
            continue
        edit = Editor(model, graph, graph.operators.index(readers[tensor]))
        copy = edit.activation(f"snapshot{index}", tensor.shape, tensor)
        edit.operator("RESHAPE", (tensor,), (copy,))
        planned[copy], top = top, aligned(top + tensor.nbytes)
        shown[len(graph.outputs)] = index
        graph.outputs = (*graph.outputs, copy)
    for position, tensor in enumerate(graph.outputs[:count]):
        if position not in shown:
            shown[position] = graph.tensors.index(tensor)
    offline_plan.attach(model, planned)
    model.signatures = None
    return Exposure(write_model(model), shown, top - above + logs.extra_bytes, count)
