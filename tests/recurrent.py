"""Small recurrent networks as converters write them: loops that set items of a list, and unrolled steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.model_builder import ModelBuilder
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor

WIDTH = 4
"""Of rows, states and items."""
F32, I8, I32, BOOL = DType.FLOAT32, DType.INT8, DType.INT32, DType.BOOL


def loop_with_a_list(steps: int = 5, items: int = 1, gap: int = 0, by: int = 1, until_data: bool = False) -> Model:
    """SimpleRNN as Keras 3 writes it: the state of turn t becomes ``items`` items of a list, from t on.

    ``gap``: items that the list loses in each turn. ``by``: what the counter grows by. ``until_data``: the model takes
    the number of turns.
    """
    b = ModelBuilder()
    length = steps + items - 1
    x = b.input("x", (steps, 1, WIDTH), F32)
    zero = b.constant("zero", np.int32(0).reshape(()))
    limit = b.input("limit", (), I32) if until_data else b.constant("limit", np.int32(steps).reshape(()))
    blank = b.constant("blank", np.zeros((length, 1, WIDTH), np.float32))
    state = b.constant("state", np.zeros((1, WIDTH), np.float32))
    given = (zero, limit, blank, state, x)
    outputs = [b.tensor(f"{tensor.name}_last", tensor.shape, tensor.dtype) for tensor in given]
    b.operator("WHILE", given, outputs, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
    b.finish(outputs[2], outputs[3])

    b.new_graph("condition")
    t, limit, *_ = (b.input(f"{tensor.name}_asked", tensor.shape, tensor.dtype) for tensor in given)
    flags = [b.tensor(f"flag{at}", (), BOOL) for at in range(3)]
    b.operator("LESS", (t, limit), (flags[0],), "LessOptions")
    b.operator("LESS", (t, limit), (flags[1],), "LessOptions")
    b.operator("LOGICAL_AND", flags[:2], (flags[2],), "LogicalAndOptions")
    b.finish(flags[2])

    b.new_graph("body")
    t, limit, whole, h, x = (b.input(f"{tensor.name}_now", tensor.shape, tensor.dtype) for tensor in given)
    row, after = b.tensor("row", (1, WIDTH), F32), b.tensor("t_next", (), I32)
    b.operator("ADD", (t, b.constant("by", np.int32(by).reshape(()))), (after,), "AddOptions")
    b.operator("GATHER", (x, t), (row,), "GatherOptions", axis=0)
    made = cell(b, row, h, weights(b, 1), weights(b, 2), "step")
    item = b.tensor("item", (items, 1, WIDTH), F32)
    said = b.constant("item_shape", np.asarray(item.shape, np.int32))
    source = made
    if items > 1:
        source = b.tensor("twice", (items, WIDTH), F32)
        b.operator("CONCATENATION", (made,) * items, (source,), "ConcatenationOptions", axis=0)
    b.operator("RESHAPE", (source, said), (item,), "ReshapeOptions", newShape=np.asarray(item.shape, np.int32))
    rest = b.constant("rest", np.asarray([-1, -1], np.int32))
    zeros = b.constant("zeros", np.zeros(2, np.int32))
    end = vector(b, t, rest, "end")
    behind = b.tensor("behind", (), I32)
    b.operator("ADD", (t, b.constant("count", np.int32(items + gap).reshape(()))), (behind,), "AddOptions")
    begin = vector(b, behind, zeros, "begin")
    parts = [b.tensor(name, (1, 1, WIDTH), F32) for name in ("head", "tail")]
    for part in parts:
        part.extras = {"shapeSignature": np.asarray([-1, 1, WIDTH], np.int32)}  # LiteRT allocates them anew
    b.operator("SLICE", (whole, b.constant("none", np.zeros(3, np.int32)), end), (parts[0],), "SliceOptions")
    b.operator("SLICE", (whole, begin, b.constant("all", np.full(3, -1, np.int32))), (parts[1],), "SliceOptions")
    grown = b.tensor("grown", whole.shape, F32)
    b.operator("CONCATENATION", (parts[0], item, parts[1]), (grown,), "ConcatenationOptions", axis=0)
    b.finish(after, limit, grown, made, x)
    return b.model


def vector(b: ModelBuilder, first: Tensor, rest: Tensor, name: str) -> Tensor:
    """``first`` and the rest, as a vector."""
    one, joined = b.tensor(f"{name}_first", (1,), I32), b.tensor(name, (3,), I32)
    shape = np.ones(1, np.int32)
    b.operator("RESHAPE", (first, b.constant(f"{name}_shape", shape)), (one,), "ReshapeOptions", newShape=shape)
    b.operator("CONCATENATION", (one, rest), (joined,), "ConcatenationOptions", axis=0)
    return joined


def weights(b: ModelBuilder, seed: int, dtype: DType = F32) -> Tensor:
    """A square matrix."""
    values = np.random.default_rng(seed).normal(size=(WIDTH, WIDTH)).astype(np.float32)
    if dtype is F32:
        return b.constant(f"weights{seed}", values)
    return b.constant(f"weights{seed}", np.clip(values * 60, -127, 127).astype(np.int8), per_tensor(0.01, 0))


def cell(
    b: ModelBuilder, row: Tensor, state: Tensor, w: Tensor, u: Tensor, name: str, scale: float = 0.03, more: int = 0
) -> Tensor:
    """tanh(w row + u state), and ``more`` times tanh of that."""
    parts = [b.tensor(f"{name}/{side}", row.shape, row.dtype, scale) for side in ("of_row", "of_state", "sum")]
    keeps = len(row.shape) > 2
    b.operator("FULLY_CONNECTED", (row, w, None), (parts[0],), "FullyConnectedOptions", keepNumDims=keeps)
    b.operator("FULLY_CONNECTED", (state, u, None), (parts[1],), "FullyConnectedOptions", keepNumDims=keeps)
    b.operator("ADD", parts[:2], (parts[2],), "AddOptions")
    made = parts[2]
    for at in reversed(range(more + 1)):
        source, made = made, b.tensor(f"{name}/state" if at == 0 else f"{name}/{at}", row.shape, row.dtype, 1 / 128)
        b.operator("TANH", (source,), (made,))
    return made


def unrolled(
    steps: int = 6,
    dtype: DType = F32,
    axis: int = 0,
    backwards: bool = False,
    scales: Sequence[float] = (0.03,),
    more: int = 0,
    is_folded: bool = False,
    in_slices: bool = False,
) -> Model:
    """The same, unrolled: the first step has no state, all states are packed, and the last one is an output, too.

    ``scales``: of the steps' sums, in turns. ``more``: as of ``cell``. ``is_folded``: the first step is what a
    converter computes of one from zeros, else another one. ``in_slices``: SLICE and CONCATENATION for UNPACK and PACK,
    as the converter of PyTorch writes them. As it is read from a file.
    """
    b = ModelBuilder()
    x = b.input("x", (steps, 1, WIDTH) if axis == 0 else (1, steps, WIDTH), dtype)
    size = (1, 1, WIDTH) if in_slices else (1, WIDTH)
    rows = [b.tensor(f"row{at}", size, dtype) for at in range(steps)]
    if in_slices:
        for at, row in enumerate(rows):
            begin = np.asarray([at, 0, 0] if axis == 0 else [0, at, 0], np.int32)
            limits = b.constant(f"begin{at}", begin), b.constant(f"size{at}", np.asarray(size, np.int32))
            b.operator("SLICE", (x, *limits), (row,), "SliceOptions")
    else:
        b.operator("UNPACK", (x,), rows, "UnpackOptions", num=steps, axis=axis)
    w, u = weights(b, 1, dtype), weights(b, 2, dtype)
    order = list(reversed(rows)) if backwards else rows
    states = [b.tensor("first", size, dtype, 1 / 128)]
    source = order.pop(0)
    if is_folded:
        made = b.tensor("of_first", size, dtype, 0.03)
        b.operator("FULLY_CONNECTED", (source, w, None), (made,), "FullyConnectedOptions", keepNumDims=True)
        source = made
    b.operator("TANH", (source,), states)
    for at, row in enumerate(order):
        states.append(cell(b, row, states[-1], w, u, f"step{at}", scales[at % len(scales)], more))
    packed = b.tensor("packed", x.shape, dtype, 1 / 128)
    if in_slices:
        b.operator("CONCATENATION", states, (packed,), "ConcatenationOptions", axis=axis)
    else:
        b.operator("PACK", states, (packed,), "PackOptions", valuesCount=steps, axis=axis)
    return read_model(write_model(b.finish(packed, states[-1])))


def layers(
    *kinds: str,
    steps: int = 5,
    sequences: bool = True,
    backwards: bool = False,
    start: float = 0.0,
    mean: bool = False,
    dtype: DType = F32,
) -> Model:
    """Layers as loops with static lists, each an ``rnn``, ``gru`` or ``lstm``, and a dense layer behind them.

    ``sequences``: of all steps, else of the last one. ``backwards``: from the last frame on. ``start``: the states
    before the first step. ``mean``: of all steps, in place of the last one. As it is read from a file.
    """
    b = ModelBuilder()
    x, whole = b.input("x", (1, steps, WIDTH), dtype, scale=1 / 128), (steps, 1, WIDTH)
    rows = _reshaped(b, x, whole, "rows")
    if backwards:
        turned = _like(b, rows, "turned")
        b.operator("REVERSE_V2", (rows, b.constant("axis", np.zeros(1, np.int32))), (turned,))
        rows = turned
    carried = []
    for at, kind in enumerate(kinds):
        names = ("h", "c") if kind == "lstm" else ("h",)
        zero = np.full((1, WIDTH), start, dtype.label)
        states = [b.constant(f"{name}{at}_zero", zero, x.quantization) for name in names]
        blank = b.constant(f"blank{at}", np.zeros(whole, dtype.label), x.quantization)
        given = (b.constant(f"first{at}", np.int32(0).reshape(())), blank, *states, rows)
        outputs = [_like(b, tensor, f"{tensor.name}_last") for tensor in given]
        numbers = {"condSubgraphIndex": 2 * at + 1, "bodySubgraphIndex": 2 * at + 2}
        b.operator("WHILE", given, outputs, "WhileOptions", **numbers)
        carried.append(given)
        rows = outputs[1]
    made = _reshaped(b, rows, x.shape, "sequence")
    if not sequences:
        last = b.tensor("last", (1, 1, WIDTH), dtype, 1 / 128)
        limits = [np.asarray(each, np.int32) for each in ((0, steps - 1, 0), (1, 1, WIDTH))]
        begin, size = (b.constant(f"limit{at}", each) for at, each in enumerate(limits))
        if mean:
            axis = b.constant("over", np.ones(1, np.int32))
            b.operator("MEAN", (made, axis), (last,), "ReducerOptions", keepDims=True)
        else:
            b.operator("SLICE", (made, begin, size), (last,), "SliceOptions")
        made = last
    scores = b.tensor("scores", made.shape, dtype)
    b.operator(
        "FULLY_CONNECTED", (made, weights(b, 9, dtype), None), (scores,), "FullyConnectedOptions", keepNumDims=True
    )
    b.finish(scores)
    for at, (kind, given) in enumerate(zip(kinds, carried, strict=True)):
        b.new_graph(f"condition{at}")
        b.graph.inputs = tuple(_like(b, tensor, f"{tensor.name}_asked") for tensor in given)
        t, flag = b.graph.inputs[0], b.tensor("flag", (), BOOL)
        b.operator("LESS", (t, b.constant("limit", np.int32(steps).reshape(()))), (flag,), "LessOptions")
        b.finish(flag)
        b.new_graph(f"body{at}")
        b.graph.inputs = tuple(_like(b, tensor, f"{tensor.name}_now") for tensor in given)
        _body(b, kind, b.graph.inputs, 10 * at)
    return read_model(write_model(b.model))


def _body(b: ModelBuilder, kind: str, given: Sequence[Tensor], seed: int) -> None:
    t, so_far, *states, x = given
    row, after = b.tensor("row", (1, WIDTH), x.dtype, 1 / 128), b.tensor("t_next", (), I32)
    b.operator("ADD", (t, b.constant("one", np.int32(1).reshape(()))), (after,), "AddOptions")
    b.operator("GATHER", (x, t), (row,), "GatherOptions", axis=0)

    def gate(name: str, number: int, activation: str, state: Tensor = states[0]) -> Tensor:
        parts = [b.tensor(f"{name}{at}", (1, WIDTH), x.dtype, 0.03) for at in range(3)]
        for source, made, at in ((row, parts[0], 1), (state, parts[1], 2)):
            w = weights(b, seed + 2 * number + at, x.dtype)
            b.operator("FULLY_CONNECTED", (source, w, None), (made,), "FullyConnectedOptions")
        b.operator("ADD", parts[:2], (parts[2],), "AddOptions")
        return applied(activation, name, parts[2])

    def applied(operator: str, name: str, *sources: Tensor) -> Tensor:
        made = b.tensor(f"{name}_{operator}", (1, WIDTH), x.dtype, 1 / 128)
        options = {"ADD": "AddOptions", "MUL": "MulOptions", "SUB": "SubOptions"}.get(operator)
        b.operator(operator, sources, (made,), options)
        return made

    if kind == "rnn":
        made = [gate("h", 1, "TANH")]
    elif kind == "gru":
        z, r = gate("z", 1, "LOGISTIC"), gate("r", 2, "LOGISTIC")
        n = gate("n", 3, "TANH", applied("MUL", "reset", r, states[0]))
        made = [applied("ADD", "h", n, applied("MUL", "kept", z, applied("SUB", "change", states[0], n)))]
    else:
        i, f, o = (gate(name, at, "LOGISTIC") for at, name in enumerate("ifo", 1))
        c = applied("ADD", "c", applied("MUL", "kept", f, states[1]), applied("MUL", "new", i, gate("g", 4, "TANH")))
        made = [applied("MUL", "h", o, applied("TANH", "out", c)), c]
    item, grown = _reshaped(b, made[0], (1, 1, WIDTH), "item"), _like(b, so_far, "grown")
    begin = vector(b, t, b.constant("zeros", np.zeros(2, np.int32)), "begin")
    b.operator("DYNAMIC_UPDATE_SLICE", (so_far, item, begin), (grown,))
    b.finish(after, grown, *made, x)


def _reshaped(b: ModelBuilder, source: Tensor, shape: Sequence[int], name: str) -> Tensor:
    made, said = _like(b, source, name), np.asarray(shape, np.int32)
    made.shape = tuple(shape)
    b.operator("RESHAPE", (source, b.constant(f"{name}_shape", said)), (made,), "ReshapeOptions", newShape=said)
    return made


def _like(b: ModelBuilder, tensor: Tensor, name: str) -> Tensor:
    made = b.tensor(name, tensor.shape, tensor.dtype)
    made.quantization = tensor.quantization
    return made
