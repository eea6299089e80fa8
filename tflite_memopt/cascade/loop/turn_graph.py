"""The two subgraphs of a loop: what is common to all loops.

    body    at = SLICE(table, counter)      rows = SLICE(image, at)      operators over these rows
            result' = DYNAMIC_UPDATE_SLICE(result, made, at)             counter' = SLICE(next, counter)
    cond    SLICE(is_turn, counter)

Where each iteration reads and writes is in tables of four integers per iteration: the begin of a slice in NHWC. The
counter goes up by four; that too, and where it ends, is in tables: SLICE is in the loop anyway, and keeps nothing in
the arena's tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Graph, Model, Tensor
from ...ir.names import last_part, stem
from ...ir.origin import origin_of, rows_in_turns
from ..region import Region

NHWC = 4
"""Integers that say where a slice begins."""
_ROWS = 1


@dataclass(frozen=True)
class LoopSubgraphs:
    """A loop's subgraphs by index, and what every iteration reads of the main graph and none changes."""

    condition: int
    body: int
    carried: tuple[Tensor, ...]


class TurnGraph:
    """The body of a loop while it is written.

    ``twins`` gives the body's tensor for a tensor of the region: an input, or a constant. ``result`` has the rows that
    the iterations before have written. ``whole``: what it is like, None for the region's exit; where it is given, an
    iteration reads of it, too, and nothing else is carried. ``axis``: along which iterations read and write, in NHWC.
    """

    def __init__(
        self, model: Model, region: Region, turns: int, whole: Tensor | None = None, axis: int = _ROWS
    ) -> None:
        exit_ = region.exit if whole is None else whole
        self._model, self._turns, self._axis = model, turns, axis
        self.graph = Graph(f"{stem(exit_)}/turn")
        self.edit = Editor(model, self.graph, 0)
        self.counter = self.edit.integers("counter", (1,))
        self.carried = _read_from_outside(region) if whole is None else ()
        constants = (t for op in region.operators for t in op.present_inputs() if t.is_constant)
        read = dict.fromkeys((*self.carried, *constants))
        self.twins = {
            tensor: self.graph.add_tensor(
                replace(tensor, name=self.edit.unique(last_part(tensor)), origin=origin_of(tensor))
            )
            for tensor in read
        }
        self.result = self.edit.activation(f"{last_part(exit_)}/rows_so_far", exit_.shape, exit_)
        self._begins: dict[tuple[int, ...], Tensor] = {}
        self._flags: dict[tuple[bool, ...], Tensor] = {}

    def rows_like(self, like: Tensor, count: int, name: str) -> Tensor:
        """A new activation of ``count`` rows."""
        return self.edit.activation(f"{last_part(like)}/{name}", (1, count, *like.shape[2:]), like)

    def cut(self, tensor: Tensor, starts: tuple[int, ...], count: int, name: str) -> Tensor:
        """``count`` rows of a tensor, from row ``starts[t]`` on in iteration t."""
        return self.slice(tensor, self.begin(starts), self.rows_like(tensor, count, name))

    def begin(self, rows: tuple[int, ...]) -> Tensor:
        """Where a slice begins: in iteration t at row ``rows[t]``, or that place of the other axis."""
        if rows not in self._begins:
            table = np.zeros((len(rows), NHWC), np.int32)
            table[:, self._axis] = rows
            begin = self.edit.integers("begin", (NHWC,))
            self._begins[rows] = self.slice(self.edit.constant("begins", table.ravel()), self.counter, begin)
        return self._begins[rows]

    def flag(self, holds: tuple[bool, ...]) -> Tensor:
        """Whether something holds in this iteration: in iteration t ``holds[t]``."""
        if holds not in self._flags:
            table = np.repeat(np.asarray(holds, np.bool_), NHWC)
            flag = self.edit.integers("flag", (1,), DType.BOOL)
            self._flags[holds] = self.slice(self.edit.constant("flags", table), self.counter, flag)
        return self._flags[holds]

    def note(self, made: Tensor, of: Tensor, first: tuple[int, ...]) -> None:
        """Say which rows of an original tensor a tensor of the body holds in each iteration."""
        made.origin = rows_in_turns(of, first)

    def grow(self, made: Tensor, writes: tuple[int, ...]) -> Tensor:
        """The result with the rows of this iteration, which are row ``writes[t]`` of it and those that follow."""
        grown = self.edit.activation(f"{last_part(self.result)}/and_these", self.result.shape, self.result)
        self.edit.update_slice(self.result, made, self.begin(writes), grown)
        return grown

    def finish(self, made: Tensor, writes: tuple[int, ...], kept: Sequence[tuple[Tensor, Tensor]]) -> LoopSubgraphs:
        """Write the rows into the result and add both subgraphs to the model.

        ``kept``: what else is carried, as it is at the start of an iteration and at its end.
        """
        grown = self.grow(made, writes)
        unchanged = [self.twins[tensor] for tensor in self.carried]
        self.graph.inputs = (self.counter, *unchanged, self.result, *(before for before, _ in kept))
        self.graph.outputs = (self._next(), *unchanged, grown, *(after for _, after in kept))
        for tensor in self.graph.tensors:
            if tensor.origin is not None and not (tensor.origin.turns or tensor.is_constant):
                tensor.origin = None  # it says what holds in one iteration
        self._model.graphs += [self._condition(), self.graph]
        return LoopSubgraphs(len(self._model.graphs) - 2, len(self._model.graphs) - 1, self.carried)

    def slice(self, tensor: Tensor, begin: Tensor, output: Tensor) -> Tensor:
        size = self.edit.constant(f"{output.name}/size", np.asarray(output.shape, np.int32))
        self.edit.operator("SLICE", (tensor, begin, size), (output,), "SliceOptions")
        return output

    def _next(self) -> Tensor:
        """The counter of the next iteration; a table takes fewer bytes of the tail than ADD."""
        table = np.repeat(np.arange(1, self._turns + 1, dtype=np.int32) * NHWC, NHWC)
        return self.slice(self.edit.constant("next", table), self.counter, self.edit.integers("counter_next", (1,)))

    def _condition(self) -> Graph:
        """The subgraph that says whether there is another iteration. TFLM gives it all that is carried."""
        graph = Graph(f"{self.graph.name}/condition")
        edit = Editor(self._model, graph, 0)
        twins = [graph.add_tensor(replace(tensor, origin=None)) for tensor in self.graph.inputs]
        more = edit.integers("more", (1,), DType.BOOL)
        table = edit.constant("is_turn", np.repeat(np.arange(self._turns + 1) < self._turns, NHWC))
        one = edit.constant("one", np.ones(1, np.int32))
        edit.operator("SLICE", (table, twins[0], one), (more,), "SliceOptions")
        graph.inputs, graph.outputs = tuple(twins), (more,)
        return graph


def _read_from_outside(region: Region) -> tuple[Tensor, ...]:
    """What the region reads and does not make, without constants: inputs by rows, then what is read whole."""
    inside = {operator.outputs[0] for operator in region.operators}
    read = (tensor for operator in region.operators for tensor in operator.present_inputs())
    whole = (tensor for tensor in read if not tensor.is_constant and tensor not in inside)
    return tuple(dict.fromkeys((*region.inputs, *whole)))
