"""What the tensors in a loop's body hold in every turn, as outputs of the model.

A *log* of a tensor has room for its values in all turns. It is carried through the loop, and every turn writes its own
values into it:

    body    log' = DYNAMIC_UPDATE_SLICE(log, tensor, [turn, 0, ...])      just before the tensor's last reader runs

All else in the loop stays as it is, so that a log shows what the loop itself computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..analysis.loops import Loop, loops_of
from ..graph.alignment import aligned
from ..io.offline_plan import tensors_in_file_order
from ..ir.dtype import DType
from ..ir.editor import Editor
from ..ir.making import Array
from ..ir.model import Graph, Model, Operator, Tensor

_LOGGED = frozenset({DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32})
"""Types of TFLM's DYNAMIC_UPDATE_SLICE."""
_RANK = 4
_TAIL = 4096
"""Bytes of the tail and of small tensors, for each log: more than enough."""


@dataclass
class Logs:
    """``outputs``: by the position of a tensor among those of all subgraphs, the output that shows it, turns first.

    ``offsets``: of what was added, where the model has a plan; up to byte ``top``. ``extra_bytes``: of arena, on top of
    what the model needs.
    """

    top: int
    outputs: dict[int, Tensor] = field(default_factory=dict)
    offsets: dict[Tensor, int] = field(default_factory=dict)
    extra_bytes: int = 0


def log_bytes(model: Model) -> dict[int, int]:
    """Bytes of the log of each tensor that can have one, by the tensor's position among those of all subgraphs."""
    places = {tensor: place for place, tensor in enumerate(tensors_in_file_order(model))}
    return {
        places[tensor]: tensor.nbytes * (loop.turns or 0)
        for loop in loops_of(model)
        for tensor in loop.body.tensors
        if loop.turns and _can_be_logged(tensor, loop)
    }


def add_logs(model: Model, chosen: Sequence[int], above: int) -> Logs:
    """Add logs of these tensors as further outputs; all that is added lies from byte ``above`` on in a plan."""
    tensors = tensors_in_file_order(model)
    wanted = {tensors[place]: place for place in chosen}
    logs = Logs(above)
    for loop in loops_of(model):
        inner = {tensor: wanted[tensor] for tensor in loop.body.tensors if tensor in wanted}
        if inner:
            _LoggedLoop(model, loop, logs).add(inner)
    return logs


def _can_be_logged(tensor: Tensor, loop: Loop) -> bool:
    """Not the result that grows in place: what is written into it has logs of its own. Nor truth values, which
    DYNAMIC_UPDATE_SLICE does not know: a wrong one shows in what SELECT_V2 makes of it.
    """
    producer = tensor.producer
    if producer is None or tensor.is_constant or tensor.dtype not in _LOGGED or not tensor.nbytes:
        return False
    grows = producer.name == "DYNAMIC_UPDATE_SLICE" and producer.inputs[0] in loop.body.inputs
    return 0 < len(tensor.shape) <= _RANK and not grows


class _LoggedLoop:
    def __init__(self, model: Model, loop: Loop, logs: Logs) -> None:
        self._model, self._loop, self._logs = model, loop, logs
        self._given: list[Tensor] = []
        self._returned: list[Tensor] = []
        self._main, self._condition = Editor(model, model.main, 0), Editor(model, loop.condition, 0)
        self._body = Editor(model, loop.body, 0)
        self._begins: dict[tuple[int, int], Tensor] = {}

    def add(self, inner: Mapping[Tensor, int]) -> None:
        """Logs of these tensors of the body, which have these positions."""
        readers = last_readers(self._loop.body)
        counter = self._carry("log/turn", np.zeros(1, np.int32), None)
        more = self._body.integers("log/next_turn", (1,))
        self._body.operator(
            "ADD", (counter, self._body.constant("log/step", np.asarray([_RANK], np.int32))), (more,), "AddOptions"
        )
        self._new_output(more)
        for tensor in inner:
            self._begin(counter, len(tensor.shape), tensor.shape[0])
        for tensor, place in inner.items():
            self._log(tensor, place, counter, readers.get(tensor))
        self._rewire()

    def _log(self, tensor: Tensor, place: int, counter: Tensor, reader: Operator | None) -> None:
        turns = self._loop.turns or 0
        shape = (turns * tensor.shape[0], *tensor.shape[1:])
        empty = np.zeros(shape, tensor.dtype.label)
        log = self._carry(f"log/{place}", empty, tensor)
        at = self._begin(counter, len(tensor.shape), tensor.shape[0])
        operators = self._loop.body.operators
        edit = Editor(self._model, self._loop.body, len(operators) if reader is None else operators.index(reader))
        grown = edit.activation(f"log/{place}/grown", shape, tensor)
        edit.update_slice(log, tensor, at, grown)
        self._new_output(grown, of=log)
        shown = self._returned[-1]
        self._logs.outputs[place] = shown
        self._logs.extra_bytes += _RANK * aligned(empty.nbytes) + _TAIL

    def _begin(self, counter: Tensor, rank: int, rows: int) -> Tensor:
        """Where a turn writes into a log of this rank."""
        if (rank, rows) not in self._begins:
            table = np.zeros((self._loop.turns or 0, _RANK), np.int32)
            table[:, 0] = np.arange(len(table)) * rows
            begin = self._body.integers("log/begin", (rank,))
            size = self._body.constant("log/size", np.asarray([rank], np.int32))
            begins = self._body.constant("log/begins", table.ravel())
            self._body.operator("SLICE", (begins, counter, size), (begin,), "SliceOptions")
            self._place(begin)
            self._begins[rank, rows] = begin
        return self._begins[rank, rows]

    def _carry(self, name: str, start: Array, like: Tensor | None) -> Tensor:
        """One more slot of the loop; returns what the body gets in it."""
        self._given.append(self._main.constant(f"{name}/start", start))
        made = [self._tensor(edit, name, start.shape, like) for edit in (self._main, self._condition, self._body)]
        returned, asked, read = made
        self._returned.append(returned)
        self._loop.condition.inputs = (*self._loop.condition.inputs, asked)
        self._loop.body.inputs = (*self._loop.body.inputs, read)
        self._place(*made)
        return read

    def _tensor(self, edit: Editor, name: str, shape: Sequence[int], like: Tensor | None) -> Tensor:
        return edit.integers(name, shape) if like is None else edit.activation(name, shape, like)

    def _new_output(self, tensor: Tensor, of: Tensor | None = None) -> None:
        """What the body gives back in the newest slot; at the place of what it gets there, where it is that grown."""
        self._loop.body.outputs = (*self._loop.body.outputs, tensor)
        if of is None:
            self._place(tensor)
        else:
            self._logs.offsets[tensor] = self._logs.offsets[of]

    def _place(self, *tensors: Tensor) -> None:
        """Bytes above the plan; all of these tensors have the same."""
        self._logs.offsets.update(dict.fromkeys(tensors, self._logs.top))
        self._logs.top = aligned(self._logs.top + max(tensor.nbytes for tensor in tensors))

    def _rewire(self) -> None:
        """Make WHILE carry the new slots."""
        graph, operator = self._model.main, self._loop.operator
        position = list(graph.operators).index(operator)
        graph.remove_operator(operator)
        inputs, outputs = (*operator.inputs, *self._given), (*operator.outputs, *self._returned)
        graph.add_operator(replace(operator, inputs=inputs, outputs=outputs), position)
        shown = [tensor for tensor in self._returned if tensor in self._logs.outputs.values()]
        graph.outputs = (*graph.outputs, *shown)


def last_readers(graph: Graph) -> dict[Tensor, Operator]:
    """The operator that reads a tensor last, for every tensor that is read."""
    return {tensor: operator for operator in graph.operators for tensor in operator.present_inputs()}


def first_readers(graph: Graph) -> dict[Tensor, Operator]:
    """The operator that reads a tensor first, for every tensor that is read."""
    return {tensor: operator for operator in reversed(graph.operators) for tensor in operator.present_inputs()}
