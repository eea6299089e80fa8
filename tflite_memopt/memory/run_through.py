"""The slow, obvious checker of plans with loops: every turn is gone through, and every byte that is read is looked at.

Each byte of the arena holds a number that says which byte of which value was written there last. Operators that move
bytes move their numbers; all others write new ones. An operator that finds another number than the one that belongs to
its input would read what something else has overwritten. A placeholder has no numbers: whoever reads its bytes for
more than a copy reads what nothing has written.

It knows nothing of lifetimes, storages or distances of loops. What a kernel does within one operator is the business
of the relations: all inputs are read before any output is written.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..analysis.loops import Loop, box_of, bytes_of, is_one_run
from ..errors import InfeasibleError
from ..ir.check import called_subgraphs, describe
from ..ir.model import Graph, Model, Operator, Tensor
from .arrange import ModelPlacement
from .layout import MemoryLayout, offsets_in_force

Numbers = npt.NDArray[np.int64]
_UNWRITTEN = -1
_TURNS_IF_UNKNOWN = 2
"""A loop whose turns depend on data is gone through this often."""


def run_through(model: Model, layout: MemoryLayout, offsets: Sequence[int]) -> None:
    """Raise InfeasibleError when an operator would read a byte that is not its input's any more.

    ``offsets``: of the layout's items, in bytes; all that TFLM uses, those that it finds itself included. The main
    graph's operators stand in the order in which they run.
    """
    _GoThrough(model, layout, offsets).run()


def check_loops(model: Model, placement: ModelPlacement) -> None:
    """Raise InfeasibleError when a plan with loops lets an operator read what has been overwritten.

    The model runs in the placement's order. A model without loops is left to the check of its plan.
    """
    layout = placement.layout
    if layout.loops.loops:
        run_through(model, layout, offsets_in_force(layout, placement.offsets))


class _GoThrough:
    def __init__(self, model: Model, layout: MemoryLayout, offsets: Sequence[int]) -> None:
        self._model, self._layout = model, layout
        self._place = dict(zip(layout.tensors, offsets, strict=False))
        ends = (offset + item.size for offset, item in zip(offsets, layout.items, strict=True))
        self._memory: Numbers = np.full(max(ends, default=0), _UNWRITTEN, np.int64)
        self._content: dict[Tensor, Numbers] = {}
        self._fresh = 0
        self._loops = {loop.operator: loop for loop in layout.loops.loops}
        self._views = {
            operator: [reuse for reuse in reuses if reuse.kind == "view"]
            for operator, reuses in (*layout.reuses.items(), *layout.loops.reuses.items())
        }

    def run(self) -> None:
        main = self._model.main
        for tensor in main.tensors:
            if tensor.is_placeholder:
                self._content[tensor] = np.full(tensor.nbytes, _UNWRITTEN, np.int64)
        for tensor in main.inputs:
            self._write(tensor, self._new(tensor))
        self._graph(main, None, 0)
        for tensor in main.outputs:
            self._read(tensor, None, must_be_written=True)

    def _graph(self, graph: Graph, loop: Loop | None, turn: int) -> None:
        for operator in graph.operators:
            if operator in self._loops:
                self._loop(self._loops[operator])
            elif called_subgraphs(operator):
                self._call(operator)
            else:
                begins = None if loop is None else loop.begins.get(operator)
                self._operator(operator, None if begins is None else begins[turn])

    def _loop(self, loop: Loop) -> None:
        """As micro/kernels/while.cc does it."""
        whole = loop.operator
        self._copy(whole.inputs, loop.condition.inputs, whole)
        self._copy(whole.inputs, whole.outputs, whole)
        self._graph(loop.condition, None, 0)
        for turn in range(_TURNS_IF_UNKNOWN if loop.turns is None else loop.turns):
            self._copy(whole.outputs, loop.body.inputs, whole)
            self._graph(loop.body, loop, turn)
            self._copy(loop.body.outputs, whole.outputs, whole)
            self._copy(whole.outputs, loop.condition.inputs, whole)
            self._graph(loop.condition, None, 0)

    def _call(self, operator: Operator) -> None:
        """Other control flow: what is inside has bytes of its own, which the plan's own check keeps apart."""
        for tensor in operator.present_inputs():
            self._read(tensor, operator, must_be_written=False)
        for output in operator.outputs:
            self._write(output, self._new(output))

    def _copy(self, sources: Sequence[Tensor | None], targets: Sequence[Tensor], operator: Operator) -> None:
        for source, target in zip(sources, targets, strict=True):
            if target not in self._place:
                continue
            assert source is not None
            if source not in self._place:  # a constant: the same bytes wherever it is copied to
                self._write(target, self._content.setdefault(source, self._new(source)))
                continue
            if self._place[source] != self._place[target]:
                self._read(source, operator, must_be_written=False)
                self._put(target, 0, self._content[source])
            self._content[target] = self._content[source]

    def _operator(self, operator: Operator, begin: Sequence[int] | None) -> None:
        if operator.name == "DYNAMIC_UPDATE_SLICE":
            self._update(operator, begin)
            return
        box = box_of(operator, begin) if operator.name == "SLICE" else None
        source = operator.inputs[0] if operator.inputs else None
        if box is not None and source in self._place and source is not None and is_one_run(box, source):
            low, end = bytes_of(box, source)
            self._look(source, low, end, operator)
            self._write(operator.outputs[0], self._content[source][low:end])
            return
        views = self._views.get(operator, [])
        for tensor in operator.present_inputs():
            self._read(tensor, operator, must_be_written=not views)
        made = {output: self._new(output) for output in operator.outputs if output in self._place}
        for view in views:
            low = max(0, view.distance)
            held = self._content[view.input][max(0, -view.distance) :][: view.output.nbytes - low]
            made[view.output][low : low + held.size] = held
        for output, numbers in made.items():
            self._write(output, numbers)

    def _update(self, operator: Operator, begin: Sequence[int] | None) -> None:
        whole, rows = operator.inputs[0], operator.inputs[1]
        output = operator.outputs[0]
        box = box_of(operator, begin)
        if whole is None or rows is None or box is None or not is_one_run(box, output) or whole not in self._place:
            for tensor in operator.present_inputs():
                self._read(tensor, operator, must_be_written=True)
            self._write(output, self._new(output))
            return
        self._read(rows, operator, must_be_written=True)
        numbers = self._content[whole].copy()
        low, end = bytes_of(box, output)
        numbers[low:end] = self._content[rows] if rows in self._place else self._new(output)[: end - low]
        if self._place[whole] != self._place[output]:
            self._read(whole, operator, must_be_written=False)
            self._put(output, 0, numbers)
        self._put(output, low, numbers[low:end])
        self._content[output] = numbers

    def _new(self, tensor: Tensor) -> Numbers:
        self._fresh += tensor.nbytes
        return np.arange(self._fresh - tensor.nbytes, self._fresh, dtype=np.int64)

    def _write(self, tensor: Tensor, numbers: Numbers) -> None:
        if tensor in self._place:
            self._put(tensor, 0, numbers)
            self._content[tensor] = numbers

    def _put(self, tensor: Tensor, at: int, numbers: Numbers) -> None:
        start = self._place[tensor] + at
        self._memory[start : start + numbers.size] = numbers

    def _read(self, tensor: Tensor, reader: Operator | None, must_be_written: bool) -> None:
        if tensor in self._place and not (tensor.is_placeholder and not must_be_written):
            if must_be_written and self._content[tensor].min(initial=0) == _UNWRITTEN:
                raise InfeasibleError(f"{self._name(reader)} reads bytes of '{tensor.name}' that nothing has written")
            self._look(tensor, 0, tensor.nbytes, reader)

    def _look(self, tensor: Tensor, low: int, end: int, reader: Operator | None) -> None:
        start, expected = self._place[tensor], self._content[tensor][low:end]
        wrong = (self._memory[start + low : start + end] != expected) & (expected != _UNWRITTEN)
        if wrong.any():
            byte = low + int(np.argmax(wrong))
            raise InfeasibleError(f"{self._name(reader)} reads '{tensor.name}', whose byte {byte} has been overwritten")

    def _name(self, operator: Operator | None) -> str:
        if operator is None:
            return "the application"
        for index, graph in enumerate(self._model.graphs):
            if operator in graph.operators:
                return describe(index, graph.operators.index(operator), operator)
        return operator.opcode.label
