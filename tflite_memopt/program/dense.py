"""A dense layer over all rows at the end of a front, as a sum to which each call adds what its rows contribute.

    weights --SLICE: those of the rows--+
    rows --QUANTIZE--FULLY_CONNECTED----+--CAST----+
    sum --SELECT_V2(is it on?)--------------------ADD--> sum' --MUL--QUANTIZE--RESHAPE--> the result of what was there
             else: the bias

Floats are added in another order so, and need no QUANTIZE, CAST and MUL. Of int8, TFLM has no dense layer with wider
results than int16. So what a call contributes is rounded: to a power of two, by which the kernel multiplies exactly
(TFLM, kernels/internal/common.cc), and so wide that no rows exceed it. Half of it a call is the most that can get lost.
A layer is made so where all calls together lose less than one step of the result, which then is off by one at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cascade.loop.turn_graph import NHWC, TurnGraph
from ..ir.change import Exactness
from ..ir.constants import values
from ..ir.dtype import DType
from ..ir.making import NO_ACTIVATION, RELU
from ..ir.model import Graph, Operator, Tensor
from ..ir.names import label
from ..ir.quantization import affine_of, per_tensor
from ..kernels.relations.shapes import RESHAPES
from ..operators.rows import is_image

_LARGEST = 32767
_MOST_LOST = 0.9
"""Of a step of the result, in all calls together; the rest is for floats, which are rounded as well."""

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Scales:
    """Of int8: the scale of the ``source``, and ``zero_of_result``, the zero point of the result.

    A product of a weight and a value, less their zero points, is ``factors`` steps of the result: one factor for each
    of its elements. ``most``: the largest such value.
    """

    source: float
    zero_of_result: int
    factors: Numbers
    most: int


@dataclass(frozen=True)
class Dense:
    """A dense layer over all of ``rows``, made by the last ``operators`` of a front.

    ``weights``: one row for each element of the result. ``scales``: None of float32.
    """

    rows: Tensor
    operators: tuple[Operator, ...]
    weights: Numbers
    bias: Numbers
    scales: Scales | None

    @property
    def output(self) -> Tensor:
        return self.operators[-1].outputs[0]

    @property
    def exactness(self) -> Exactness:
        return "reassociates" if self.scales is None else "approximates"

    def write(self, turn: TurnGraph, made: Tensor, early: int, count: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Add what ``made`` contributes, in the first ``early`` calls nothing; returns result and sum tied."""
        edit, shape = turn.edit, (1, len(self.bias))
        blocks = self.weights.reshape(shape[1], count - early, -1).swapaxes(0, 1)
        step = self.step(blocks)
        added = self._contribution(turn, made, _weights_of_turn(turn, blocks, early, self.scales), step)
        before, so_far, after = (edit.integers(f"sum/{name}", shape, DType.FLOAT32) for name in ("in", "so_far", "out"))
        start = edit.constant("sum/start", (self.bias / step).astype(np.float32)[None])
        is_on = turn.flag(tuple(at > early for at in range(count)))
        edit.operator("SELECT_V2", (is_on, before, start), (so_far,), "SelectV2Options")
        edit.operator("ADD", (so_far, added), (after,), "AddOptions")
        return self._finished(turn, after, step), (after, before)

    def step(self, blocks: Numbers) -> float:
        """To what a contribution is rounded, in products of a weight and a value; 1 where it is not."""
        if self.scales is None:
            return 1.0
        return float(2 ** ceil(log2(max(1.0, _largest(blocks) * self.scales.most / _LARGEST))))

    def _contribution(self, turn: TurnGraph, made: Tensor, weights: Tensor, step: float) -> Tensor:
        edit, shape, scales = turn.edit, (1, len(self.bias)), self.scales
        rows, found = made, edit.integers("contribution", shape, DType.FLOAT32 if scales is None else DType.INT16)
        if scales is not None:
            rows = edit.integers("rows/wide", made.shape, DType.INT16)
            rows.quantization, found.quantization = per_tensor(scales.source, 0), per_tensor(scales.source * step, 0)
            edit.operator("QUANTIZE", (made,), (rows,), "QuantizeOptions")
        edit.operator("FULLY_CONNECTED", (rows, weights, None), (found,), "FullyConnectedOptions")
        if scales is None:
            return found
        steps = edit.integers("contribution/steps", shape, DType.FLOAT32)
        edit.operator("CAST", (found,), (steps,))
        return steps

    def _finished(self, turn: TurnGraph, total: Tensor, step: float) -> Tensor:
        """The result for a sum."""
        edit, scales, activation = turn.edit, self.scales, self.operators[-1].option("fusedActivationFunction", 0)
        result = edit.activation(self.output.name, self.output.shape, self.output)
        value = edit.integers("result/steps", total.shape, DType.FLOAT32)
        if scales is None:
            if activation == RELU:
                edit.operator("RELU", (total,), (value,))
            edit.reshape(value if activation == RELU else total, result)
            return result
        factors = edit.constant("factors", (scales.factors * step).astype(np.float32)[None])
        edit.operator("MUL", (total, factors), (value,), "MulOptions", fusedActivationFunction=activation)
        rounded = edit.activation("result/rounded", total.shape, self.output, per_tensor(1.0, scales.zero_of_result))
        edit.operator("QUANTIZE", (value,), (rounded,), "QuantizeOptions")
        edit.reshape(rounded, result)  # the same bytes, with their scale
        return result


def dense_of(graph: Graph, is_allowed: bool) -> Dense | str | None:
    """The dense layer at the end of a front, or why it cannot be summed up row by row; None where it ends otherwise.

    ``is_allowed``: to compute it in another way.
    """
    last = graph.operators[-1]
    source, weights = (*last.inputs, None)[:2]
    if last.name != "FULLY_CONNECTED" or source is None or weights is None:
        return None
    rows, operators = source, tuple[Operator, ...]((last,))
    if source.producer is not None and source.producer.name in RESHAPES and len(source.uses) == 1:
        rows, operators = source.producer.inputs[0] or source, (source.producer, last)
    if not is_image(rows) or rows.shape[1] == 1 or weights.shape[-1] != rows.elements:
        return None
    if not is_allowed:
        return f"{label(last)}: a sum of parts, each rounded by itself; --allow-approximate allows that"
    found = _sums_of(last, rows, weights)
    return f"{label(last)}: {found}" if isinstance(found, str) else Dense(rows, operators, *found)


def _sums_of(last: Operator, rows: Tensor, weights: Tensor) -> tuple[Numbers, Numbers, Scales | None] | str:
    """Weights, bias and scales, or why they make no sums."""
    bias, output = last.inputs[2] if len(last.inputs) > 2 else None, last.outputs[0]
    found, added = values(weights), np.zeros(1) if bias is None else values(bias)
    if found is None or added is None:
        return "its weights are computed, or of a packed type"
    if last.option("fusedActivationFunction", 0) not in (NO_ACTIVATION, RELU):
        return "its activation is no RELU"
    starts = np.broadcast_to(added.astype(np.float64).ravel(), len(found))
    if {rows.dtype, weights.dtype, output.dtype} == {DType.FLOAT32}:
        return found, starts, None
    scales = _scales_of(rows, weights, output)
    if scales is None:
        return "only layers of float32, and of int8 with symmetric weights, are summed up row by row"
    blocks = found.reshape(len(found), rows.shape[1], -1)
    lost = rows.shape[1] * _largest(blocks) * scales.most / _LARGEST * scales.factors.max()  # whatever a call takes
    return f"in sums of int16 it could be off by {ceil(lost)} steps" if lost > _MOST_LOST else (found, starts, scales)


def _scales_of(rows: Tensor, weights: Tensor, output: Tensor) -> Scales | None:
    source, result, found = affine_of(rows), affine_of(output), weights.quantization
    if {rows.dtype, weights.dtype, output.dtype} != {DType.INT8} or source is None or result is None or found is None:
        return None
    if found.zero_point.any() or found.scale.size not in (1, weights.shape[0]):
        return None
    factors = np.broadcast_to(found.scale.astype(np.float64) * source.scale / result.scale, weights.shape[:1])
    most = max(127 - source.zero_point, source.zero_point + 128)
    return Scales(source.scale, result.zero_point, factors, most)


def _weights_of_turn(turn: TurnGraph, blocks: Numbers, early: int, scales: Scales | None) -> Tensor:
    """Those of the rows of this call; in the first calls any."""
    edit, (count, units, width) = turn.edit, blocks.shape
    table = np.zeros((count + early, NHWC), np.int32)
    table[early:, 0] = np.arange(count) * units
    begin = turn.slice(edit.constant("weights/begins", table.ravel()), turn.counter, edit.integers("begin", (2,)))
    quantization = None if scales is None else per_tensor(1.0, 0)
    every = edit.constant("weights", np.ascontiguousarray(blocks).reshape(-1, width), quantization)
    return turn.slice(every, begin, edit.activation("weights/of_rows", (units, width), every))


def _largest(blocks: Numbers) -> float:
    """Of sums of the weights' magnitudes in one block and row."""
    return float(np.abs(blocks.astype(np.float64)).sum(-1).max())
