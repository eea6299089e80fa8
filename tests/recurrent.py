"""Small recurrent networks as converters write them: a loop that sets items of a list, and unrolled steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.makers.model_builder import ModelBuilder
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import DType, Model, Tensor
from tflite_memopt.ir.tensors import per_tensor

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
    parts = [b.tensor(f"{name}/{side}", (1, WIDTH), row.dtype, scale) for side in ("of_row", "of_state", "sum")]
    b.operator("FULLY_CONNECTED", (row, w, None), (parts[0],), "FullyConnectedOptions")
    b.operator("FULLY_CONNECTED", (state, u, None), (parts[1],), "FullyConnectedOptions")
    b.operator("ADD", parts[:2], (parts[2],), "AddOptions")
    made = parts[2]
    for at in reversed(range(more + 1)):
        source, made = made, b.tensor(f"{name}/state" if at == 0 else f"{name}/{at}", (1, WIDTH), row.dtype, 1 / 128)
        b.operator("TANH", (source,), (made,))
    return made


def unrolled(
    steps: int = 6,
    dtype: DType = F32,
    axis: int = 0,
    backwards: bool = False,
    scales: Sequence[float] = (0.03,),
    more: int = 0,
) -> Model:
    """The same, unrolled: the first step has no state, all states are packed, and the last one is an output, too.

    ``scales``: of the steps' sums, in turns. ``more``: as of ``cell``. As it is read from a file.
    """
    b = ModelBuilder()
    x = b.input("x", (steps, 1, WIDTH) if axis == 0 else (1, steps, WIDTH), dtype)
    rows = [b.tensor(f"row{at}", (1, WIDTH), dtype) for at in range(steps)]
    b.operator("UNPACK", (x,), rows, "UnpackOptions", num=steps, axis=axis)
    w, u = weights(b, 1, dtype), weights(b, 2, dtype)
    order = list(reversed(rows)) if backwards else rows
    first = b.tensor("first", (1, WIDTH), dtype, 1 / 128)
    b.operator("TANH", (order[0],), (first,))
    states = [first]
    for at, row in enumerate(order[1:]):
        states.append(cell(b, row, states[-1], w, u, f"step{at}", scales[at % len(scales)], more))
    packed = b.tensor("packed", x.shape, dtype, 1 / 128)
    b.operator("PACK", states, (packed,), "PackOptions", valuesCount=steps, axis=axis)
    return read_model(write_model(b.finish(packed, states[-1])))
