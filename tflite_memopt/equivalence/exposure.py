"""The tensors inside a model on TFLM, which gives back outputs only.

Other models stand in for the tensors of the entry graph: a copy of each tensor is taken just before its last reader
runs, and is an output. The copies of a planned model lie above the arena and disturb nothing, so that a fault that the
plan causes in a tensor is in its copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..analysis.loops import spent_in_rows
from ..graph.alignment import aligned
from ..io import offline_plan
from ..io.reader import read_model
from ..io.writer import write_model
from ..ir.copying import copy_model
from ..ir.editor import Editor
from ..ir.model import Graph, Model, Operator, Tensor
from ..ir.tensors import in_head
from .adapter import LARGEST_ARENA, Array, Run, RunJob, Sample
from .inputs import is_exchanged
from .runner import ModelRunner

FILLS = (0x5A, 0xA5)
"""Two bytes for the arena before a run; no bit is the same in both."""
MOST_BYTES = 256 << 20
"""Of tensors that one model shows; what is more is shown by another one."""
_FEWER_BYTES = (1 << 20, 1 << 16, 0)
"""The same in an arena that may be small: one after the other until they fit."""


@dataclass(frozen=True)
class Exposure:
    """A model, and which of its outputs shows which tensor of the model that it was made of: position -> position.

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


def computed_tensors(graph: Graph) -> tuple[int, ...]:
    """Positions of the tensors that a run gives values to, inputs included, as far as interpreters hand them out."""
    inputs = set(graph.inputs)
    return tuple(index for index, tensor in enumerate(graph.tensors) if tensor in inputs or _is_computed(tensor))


def _is_computed(tensor: Tensor) -> bool:
    has_value = tensor.producer is not None and not tensor.is_constant and tensor.elements > 0
    return has_value and is_exchanged(tensor.dtype)


def judged_before(model: Model, graph: Graph) -> dict[Tensor, Operator]:
    """By tensor that is read, the operator before which it must be whole: its last reader.

    It is the first one where rows are given up once they are read.
    """
    last = {tensor: operator for operator in graph.operators for tensor in operator.present_inputs()}
    first = {tensor: operator for operator in reversed(graph.operators) for tensor in operator.present_inputs()}
    return last | {tensor: first[tensor] for tensor in spent_in_rows(model) if tensor in first}


def run_exposed(runner: ModelRunner, data: bytes, samples: list[Sample], arena_bytes: int, fill: int = FILLS[1]) -> Run:
    """Run a model on TFLM without its plan and with no memory shared, its tensors shown."""
    job = RunJob(without_plan(data), samples, arena_bytes, fill=fill)
    return run_snapshots(runner, job, 0)


def run_snapshots(runner: ModelRunner, job: RunJob, head: int) -> Run:
    """TFLM's run of a model, of each tensor what it held at its last use; ``head``: bytes that its plan takes.

    One run shows at most ``MOST_BYTES`` bytes of tensors, and fewer where the arena may be small.
    """
    for most_bytes in (MOST_BYTES, *(_FEWER_BYTES if job.arena_bytes == LARGEST_ARENA else ())):
        found = _run_all(runner, job, snapshots(job.model, head, most_bytes))
        if found.ran:
            break
    return found


def _run_all(runner: ModelRunner, job: RunJob, models: list[Exposure]) -> Run:
    outputs: dict[int, list[Array]] = {}
    tensors: dict[int, list[Array]] = {}
    for exposure in models:
        run = runner.run(RunJob(exposure.model, job.samples, exposure.arena_in(job.arena_bytes), fill=job.fill))
        if not run.ran:
            return run
        shown = exposure.tensors
        tensors.update({shown[at]: values for at, values in run.outputs.items() if at in shown})
        outputs.update({at: values for at, values in run.outputs.items() if at < exposure.outputs})
    return Run(outputs, tensors)


def snapshots(data: bytes, head: int, most_bytes: int = MOST_BYTES) -> list[Exposure]:
    """The model with its plan, where it has one, and copies of its tensors, at most ``most_bytes`` of them or one.

    ``head``: bytes of TFLM's head without them.
    """
    model = read_model(data)
    return [_snapshot(copy_model(model), chosen, aligned(head)) for chosen in _groups(model, most_bytes)]


def _groups(model: Model, most_bytes: int) -> Iterator[list[int]]:
    """The tensors to show, in as few models as their bytes allow; at least one model, if only for the outputs."""
    tensors = model.main.tensors
    group: list[int] = []
    room = most_bytes
    for index in computed_tensors(model.main):
        size = aligned(tensors[index].nbytes)
        if not in_head(tensors[index]):
            continue
        if group and size > room:
            yield group
            group, room = [], most_bytes
        group.append(index)
        room -= size
    yield group


def _snapshot(model: Model, chosen: Sequence[int], above: int) -> Exposure:
    graph = model.main
    planned = offline_plan.decode(model)
    offsets, top, count = dict(planned or {}), above, len(graph.outputs)
    shown = {position: graph.tensors.index(tensor) for position, tensor in enumerate(graph.outputs)}
    readers = judged_before(model, graph)
    for index in chosen:
        tensor = graph.tensors[index]
        if tensor in graph.outputs or tensor not in readers:
            continue
        edit = Editor(model, graph, graph.operators.index(readers[tensor]))
        copy = edit.activation(f"snapshot{index}", tensor.shape, tensor)
        edit.operator("RESHAPE", (tensor,), (copy,))
        offsets[copy], top = top, aligned(top + tensor.nbytes)
        shown[len(graph.outputs)] = index
        graph.outputs = (*graph.outputs, copy)
    if planned is not None:
        offline_plan.attach(model, offsets)
    model.signatures = None
    return Exposure(write_model(model), shown, top - above, count)


def without_plan(data: bytes) -> bytes:
    """The model with its offsets left to TFLM, which lets nothing share bytes that is alive at the same time."""
    model = read_model(data)
    if offline_plan.decode(model) is None:
        return data
    offline_plan.detach(model)
    return write_model(model)
