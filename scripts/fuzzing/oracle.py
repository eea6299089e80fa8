"""What the specification says that a model computes: real numbers in double precision, without any runtime.

A quantized value q stands for ``scale * (q - zero_point)``, with the scale of its channel. Operators compute with these
numbers, and what an operator in the middle of a graph gives is rounded to the type and the scale of its tensor.
Source: the comments of the builtins in MLIR's TensorFlow Lite dialect (tfl_ops.td), and the quantization specification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_memopt.model.ir.model import DType, Graph, Model, Operator, Tensor
from tflite_memopt.model.ir.tensors import is_quantized

Real = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
_NARROW = {DType.INT4: 4, DType.INT2: 2}
_INTEGERS = (*_NARROW, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.UINT16, DType.UINT32)


ONE_SCALE = frozenset(
    {
        *("AVERAGE_POOL_2D", "BATCH_TO_SPACE_ND", "BROADCAST_TO", "CONCATENATION", "DEPTH_TO_SPACE"),
        *("DYNAMIC_UPDATE_SLICE", "EXPAND_DIMS", "FILL", "GATHER", "GATHER_ND", "MAXIMUM", "MAX_POOL_2D", "MINIMUM"),
        *("MIRROR_PAD", "PACK", "PAD", "PADV2", "REDUCE_MAX", "REDUCE_MIN", "RESHAPE", "RESIZE_BILINEAR"),
        *(
            "RESIZE_NEAREST_NEIGHBOR",
            "REVERSE_V2",
            "SELECT",
            "SELECT_V2",
            "SLICE",
            "SPACE_TO_BATCH_ND",
            "SPACE_TO_DEPTH",
        ),
        *("SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK"),
    }
)
"""Kinds whose inputs and outputs have one scale by the specification (``SameOperandsAndResultsScale``). It says nothing
of a file that has several: kernels copy integers. This package writes such files, where a tensor stands for several."""


class State:
    """What is kept between two inferences: values of variables, and of variable tensors."""

    def __init__(self) -> None:
        self.of: dict[object, Real] = {}


def expected(model: Model, sample: Sequence[Array], state: State) -> list[Real]:
    """The real numbers that the outputs of the entry graph stand for; not rounded."""
    given = [real_of(tensor, array) for tensor, array in zip(model.main.inputs, sample, strict=True)]
    return _run(model, model.main, given, state)


def real_of(tensor: Tensor, array: Array) -> Real:
    """The numbers that the elements of an array stand for."""
    values = np.asarray(array).astype(np.float64).reshape(tensor.shape)
    found = tensor.quantization
    if found is None or not is_quantized(found) or tensor.dtype not in _INTEGERS:
        return values
    return (values - _along(found.zero_point, found.axis, values.ndim)) * _along(found.scale, found.axis, values.ndim)


def quantized(tensor: Tensor, real: Real) -> Real:
    """The same numbers in the steps of a tensor, kept within its range; not rounded."""
    if tensor.dtype not in _INTEGERS:
        return real
    found = tensor.quantization
    if found is not None and is_quantized(found):
        real = real / _along(found.scale, found.axis, real.ndim) + _along(found.zero_point, found.axis, real.ndim)
    bits = _NARROW.get(tensor.dtype, tensor.dtype.packed_bits)
    low = 0 if tensor.dtype.label.startswith("u") else -(1 << (bits - 1))
    return np.clip(real, low, low + (1 << bits) - 1)


def constant_of(tensor: Tensor) -> Array:
    """The elements of a constant, as they are stored."""
    data = tensor.buffer.data
    assert data is not None
    if tensor.dtype in _NARROW:
        bits = _NARROW[tensor.dtype]
        parts = np.stack([(data >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)], -1).ravel()
        signed = parts.astype(np.int8)
        return np.where(signed >= 1 << (bits - 1), signed - (1 << bits), signed)[: tensor.elements]
    if tensor.dtype is DType.BFLOAT16:
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return data.view(tensor.dtype.label)


def _along(values: Array, axis: int, rank: int) -> Array:
    if values.size == 1:
        return values.reshape(()).astype(np.float64)
    shape = [1] * rank
    shape[axis] = values.size
    return values.reshape(shape).astype(np.float64)


def _run(model: Model, graph: Graph, given: Sequence[Real], state: State) -> list[Real]:
    known: dict[Tensor, Real] = dict(zip(graph.inputs, given, strict=True))
    for tensor in graph.tensors:
        if tensor.is_constant:
            known[tensor] = _in_blocks(graph, tensor, real_of(tensor, constant_of(tensor)))
        elif tensor.is_variable:
            known[tensor] = state.of.setdefault(tensor.name, np.zeros(tensor.shape))
    for operator in graph.operators:
        inputs = [None if tensor is None else known[tensor] for tensor in operator.inputs]
        made = _computed(model, operator, inputs, state)
        for tensor, values in zip(operator.outputs, made, strict=True):
            known[tensor] = values if tensor in graph.outputs else _rounded(tensor, values)
    return [known[tensor] for tensor in graph.outputs]


def _in_blocks(graph: Graph, tensor: Tensor, values: Real) -> Real:
    """The values, each times the scale of its block along the last axis, where there are such scales."""
    details = None if tensor.quantization is None else tensor.quantization.extras.get("details")
    if details is None or not hasattr(details, "blockSize"):
        return values
    scales = constant_of(graph.tensors[details.scales]).astype(np.float64).reshape(*values.shape[:-1], -1)
    return values * np.repeat(scales, details.blockSize, -1)


def _rounded(tensor: Tensor, values: Real) -> Real:
    if tensor.dtype not in _INTEGERS:
        return values
    return real_of(tensor, np.rint(quantized(tensor, values)))


def _computed(model: Model, operator: Operator, inputs: Sequence[Real | None], state: State) -> list[Real]:
    name = operator.name
    if name in ("IF", "WHILE", "CALL_ONCE"):
        return _called(model, operator, [each for each in inputs if each is not None], state)
    if name == "VAR_HANDLE":
        return [np.asarray(float(hash(operator.option("sharedName"))))]
    if name == "ASSIGN_VARIABLE":
        assert inputs[0] is not None
        assert inputs[1] is not None
        state.of[float(inputs[0])] = inputs[1]
        return []
    if name == "READ_VARIABLE":
        assert inputs[0] is not None
        return [state.of[float(inputs[0])]]
    if name == "SVDF":
        return [_svdf(operator, inputs, state)]
    return KINDS[name](operator, *inputs)


def _called(model: Model, operator: Operator, inputs: list[Real], state: State) -> list[Real]:
    def graph(option: str) -> Graph:
        return model.graphs[int(operator.option(option))]

    if operator.name == "CALL_ONCE":
        if state.of.setdefault("called", np.zeros(())) == 0:
            state.of["called"] = np.ones(())
            _run(model, graph("initSubgraphIndex"), (), state)
        return []
    if operator.name == "IF":
        taken = "thenSubgraphIndex" if inputs[0].any() else "elseSubgraphIndex"
        return _run(model, graph(taken), inputs[1:], state)
    condition, body = graph("condSubgraphIndex"), graph("bodySubgraphIndex")
    while _run(model, condition, inputs, state)[0].any():
        inputs = _run(model, body, inputs, state)
    return inputs


# Operators by kind ----------------------------------------------------------------------------------------------------

Kind = Callable[..., list[Real]]


def activated(operator: Operator, values: Real) -> Real:
    """After the fused activation."""
    low, high = {0: (-math.inf, math.inf), 1: (0.0, math.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}[
        int(operator.option("fusedActivationFunction", 0))
    ]
    return np.clip(values, low, high)


def _unary(function: Callable[..., Any]) -> Kind:
    return lambda _, x: [function(x)]


def _binary(function: Callable[..., Any]) -> Kind:
    return lambda operator, a, b: [activated(operator, np.asarray(function(a, b), np.float64))]


def _softmax(operator: Operator, x: Real) -> list[Real]:
    beta = float(operator.option("beta", 0.0)) if operator.name == "SOFTMAX" else 1.0
    shifted = beta * (x - x.max(-1, keepdims=True))
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return [np.exp(logs) if operator.name == "SOFTMAX" else logs]


def _gelu(operator: Operator, x: Real) -> list[Real]:
    if operator.option("approximate", False):
        return [0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))]
    return [0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))]


def _leaky(operator: Operator, x: Real) -> list[Real]:
    return [np.where(x >= 0, x, float(np.float32(operator.option("alpha", 0.0))) * x)]


def _axes(x: Real, axes: Real) -> tuple[int, ...]:
    return tuple(sorted({int(axis) % x.ndim for axis in np.ravel(axes)}))


def _reduced(function: Callable[..., Any]) -> Kind:
    def kind(operator: Operator, x: Real, axes: Real) -> list[Real]:
        keep = bool(operator.option("keepDims", False))
        return [np.asarray(function(x, axis=_axes(x, axes), keepdims=keep), np.float64)]

    return kind


def _argument(function: Callable[..., Array]) -> Kind:
    return lambda _, x, axis: [np.asarray(function(x, axis=int(axis.ravel()[0])), np.float64)]


def _cumsum(operator: Operator, x: Real, axis: Real) -> list[Real]:
    at = int(axis.ravel()[0])
    source = np.flip(x, at) if operator.option("reverse", False) else x
    sums = np.cumsum(source, at)
    sums = sums - source if operator.option("exclusive", False) else sums
    return [np.flip(sums, at) if operator.option("reverse", False) else sums]


def _pads(size: int, taps: int, stride: int, dilation: int, padding: int) -> tuple[int, int]:
    """The rows before, and the number of windows."""
    reach = (taps - 1) * dilation + 1
    if padding == 1:
        return 0, -(-(size - reach + 1) // stride)
    count = -(-size // stride)
    return max((count - 1) * stride + reach - size, 0) // 2, count


def _windows(x: Real, taps: tuple[int, int], operator: Operator, outside: float) -> Real:
    """Windows of an NHWC image: (N, H, W, taps high, taps wide, C); ``outside`` where there is no image."""
    strides = int(operator.option("strideH", 0)), int(operator.option("strideW", 0))
    dilations = int(operator.option("dilationHFactor", 1)), int(operator.option("dilationWFactor", 1))
    padding = int(operator.option("padding", 0))
    axes = [_pads(x.shape[1 + at], taps[at], strides[at], dilations[at], padding) for at in range(2)]
    found = np.full((x.shape[0], axes[0][1], axes[1][1], *taps, x.shape[3]), outside)
    for row, column, i, j in product(range(axes[0][1]), range(axes[1][1]), range(taps[0]), range(taps[1])):
        h = row * strides[0] - axes[0][0] + i * dilations[0]
        w = column * strides[1] - axes[1][0] + j * dilations[1]
        if 0 <= h < x.shape[1] and 0 <= w < x.shape[2]:
            found[:, row, column, i, j] = x[:, h, w]
    return found


def _pool(operator: Operator, x: Real) -> list[Real]:
    taps = int(operator.option("filterHeight", 0)), int(operator.option("filterWidth", 0))
    windows = _windows(x, taps, operator, math.nan)
    if operator.name == "MAX_POOL_2D":
        return [activated(operator, np.nanmax(windows, (3, 4)))]
    if operator.name == "AVERAGE_POOL_2D":
        return [activated(operator, np.nanmean(windows, (3, 4)))]
    return [activated(operator, np.sqrt(np.nanmean(windows**2, (3, 4))))]


def _convolution(operator: Operator, x: Real, filters: Real, bias: Real | None = None) -> list[Real]:
    count, high, wide, depth = filters.shape
    groups = x.shape[3] // depth
    windows = _windows(x, (high, wide), operator, 0.0)
    each = count // groups
    parts = [
        np.einsum(
            "nhwijc,oijc->nhwo", windows[..., at * depth : (at + 1) * depth], filters[at * each : (at + 1) * each]
        )
        for at in range(groups)
    ]
    return [activated(operator, np.concatenate(parts, -1) + (0.0 if bias is None else bias))]


def _depthwise(operator: Operator, x: Real, filters: Real, bias: Real | None = None) -> list[Real]:
    _, high, wide, count = filters.shape
    windows = np.repeat(_windows(x, (high, wide), operator, 0.0), count // x.shape[3], -1)
    sums = np.einsum("nhwijc,ijc->nhwc", windows, filters[0])
    return [activated(operator, sums + (0.0 if bias is None else bias))]


def _transposed(operator: Operator, size: Real, filters: Real, x: Real, bias: Real | None = None) -> list[Real]:
    shape = tuple(int(each) for each in size)
    strides = int(operator.option("strideH")), int(operator.option("strideW"))
    padding, taps = int(operator.option("padding", 0)), filters.shape[1:3]
    before = [_pads(shape[1 + at], taps[at], strides[at], 1, padding)[0] for at in range(2)]
    made = np.zeros(shape)
    for row, column, i, j in product(range(x.shape[1]), range(x.shape[2]), range(taps[0]), range(taps[1])):
        h, w = row * strides[0] - before[0] + i, column * strides[1] - before[1] + j
        if 0 <= h < shape[1] and 0 <= w < shape[2]:
            made[:, h, w] += x[:, row, column] @ filters[:, i, j].T
    return [activated(operator, made + (0.0 if bias is None else bias))]


def _dense(operator: Operator, x: Real, weights: Real, bias: Real | None = None) -> list[Real]:
    sums = x.reshape(-1, weights.shape[1]) @ weights.T + (0.0 if bias is None else bias)
    return [activated(operator, sums).reshape(operator.outputs[0].shape)]


def _matmul(operator: Operator, a: Real, b: Real) -> list[Real]:
    a = np.swapaxes(a, -1, -2) if operator.option("adjX", False) else a
    return [a @ (np.swapaxes(b, -1, -2) if operator.option("adjY", False) else b)]


def _svdf(operator: Operator, inputs: Sequence[Real | None], state: State) -> Real:
    x, features, times, bias, _ = inputs
    assert x is not None
    assert features is not None
    assert times is not None
    rank, (filters, memory) = int(operator.option("rank")), times.shape
    held = state.of[operator.required(4).name].reshape(x.shape[0], filters, memory)
    held = np.concatenate([held[..., 1:], (x @ features.T)[..., None]], -1)
    state.of[operator.required(4).name] = held.reshape(x.shape[0], -1)
    sums = (held * times).sum(-1).reshape(x.shape[0], filters // rank, rank).sum(-1)
    return activated(operator, sums + (0.0 if bias is None else bias))


def _resized(operator: Operator, x: Real, size: Real) -> list[Real]:
    align, half = (bool(operator.option(name, False)) for name in ("alignCorners", "halfPixelCenters"))
    for axis, target in zip((1, 2), (int(each) for each in size), strict=True):
        have = x.shape[axis]
        scale = (have - 1) / (target - 1) if align and target > 1 else have / target
        at = np.arange(target, dtype=np.float64)
        if operator.name == "RESIZE_BILINEAR":
            places = np.clip((at + 0.5) * scale - 0.5 if half else at * scale, 0, have - 1)
            low = np.floor(places).astype(int)
            part = (places - low).reshape([-1 if axis == each else 1 for each in range(4)])
            x = np.take(x, low, axis) * (1 - part) + np.take(x, np.minimum(low + 1, have - 1), axis) * part
        else:
            places = (at + (0.5 if half else 0.0)) * scale
            nearest = np.floor(places + 0.5) if align else np.floor(places)
            x = np.take(x, np.clip(nearest, 0, have - 1).astype(int), axis)
    return [x]


def _whole(values: Real) -> list[int]:
    return [int(each) for each in np.ravel(values)]


def _padded(operator: Operator, x: Real, paddings: Real, value: Real | None = None) -> list[Real]:
    widths = [(int(a), int(b)) for a, b in paddings]
    if operator.name == "MIRROR_PAD":
        return [np.pad(x, widths, "reflect" if int(operator.option("mode", 0)) == 0 else "symmetric")]
    return [np.pad(x, widths, constant_values=0.0 if value is None else float(value.ravel()[0]))]


def _strided(operator: Operator, x: Real, *limits: Real) -> list[Real]:
    begin, end, stride = (_whole(each) for each in limits)
    masks = {
        name: int(operator.option(f"{name}Mask", 0)) for name in ("begin", "end", "ellipsis", "newAxis", "shrinkAxis")
    }
    index: list[Any] = []
    for at in range(len(begin)):
        if masks["ellipsis"] >> at & 1:
            index.append(...)
        elif masks["newAxis"] >> at & 1:
            index.append(np.newaxis)
        elif masks["shrinkAxis"] >> at & 1:
            index.append(begin[at])
        else:
            first = None if masks["begin"] >> at & 1 else begin[at]
            index.append(slice(first, None if masks["end"] >> at & 1 else end[at], stride[at]))
    return [np.asarray(x[tuple(index)])]


def _sliced(_: Operator, x: Real, begin: Real, size: Real) -> list[Real]:
    cuts = zip(_whole(begin), _whole(size), x.shape, strict=True)
    return [x[tuple(slice(at, have if count == -1 else at + count) for at, count, have in cuts)]]


def _split(operator: Operator, axis: Real, x: Real) -> list[Real]:
    return list(np.split(x, len(operator.outputs), int(axis.ravel()[0])))


def _split_v(_: Operator, x: Real, sizes: Real, axis: Real) -> list[Real]:
    at, parts = int(axis.ravel()[0]), _whole(sizes)
    parts = [x.shape[at] - sum(parts) - 1 if size == -1 else size for size in parts]
    return list(np.split(x, np.cumsum(parts)[:-1], at))


def _space_to_batch(_: Operator, x: Real, block: Real, paddings: Real) -> list[Real]:
    sizes = _whole(block)
    rest = [(0, 0)] * (x.ndim - 1 - len(sizes))
    x = np.pad(x, [(0, 0), *((int(a), int(b)) for a, b in paddings), *rest])
    shape: list[int] = [x.shape[0]]
    for at, size in enumerate(sizes):
        shape += [x.shape[1 + at] // size, size]
    tail = x.shape[1 + len(sizes) :]
    blocks, spaces = range(2, 2 * len(sizes) + 1, 2), range(1, 2 * len(sizes), 2)
    order = [*blocks, 0, *spaces, *range(2 * len(sizes) + 1, 2 * len(sizes) + 1 + len(tail))]
    moved = x.reshape([*shape, *tail]).transpose(order)
    return [moved.reshape([-1, *(x.shape[1 + at] // size for at, size in enumerate(sizes)), *tail])]


def _batch_to_space(_: Operator, x: Real, block: Real, crops: Real) -> list[Real]:
    sizes = _whole(block)
    count, spaces = len(sizes), x.shape[1 : 1 + len(sizes)]
    tail = x.shape[1 + count :]
    split = x.reshape([*sizes, x.shape[0] // math.prod(sizes), *spaces, *tail])
    order = [count, *(each for at in range(count) for each in (count + 1 + at, at)), *range(2 * count + 1, split.ndim)]
    whole = split.transpose(order).reshape([-1, *(a * b for a, b in zip(spaces, sizes, strict=True)), *tail])
    cuts = [slice(int(a), whole.shape[1 + at] - int(b)) for at, (a, b) in enumerate(crops)]
    at = (slice(None), *cuts)
    return [whole[at]]


def _depth(operator: Operator, x: Real) -> list[Real]:
    size, (n, h, w, c) = int(operator.option("blockSize")), x.shape
    if operator.name == "DEPTH_TO_SPACE":
        parts = x.reshape(n, h, w, size, size, c // size**2).transpose(0, 1, 3, 2, 4, 5)
        return [parts.reshape(n, h * size, w * size, c // size**2)]
    parts = x.reshape(n, h // size, size, w // size, size, c).transpose(0, 1, 3, 2, 4, 5)
    return [parts.reshape(n, h // size, w // size, c * size**2)]


def _gather(operator: Operator, x: Real, indices: Real) -> list[Real]:
    axis, batches = int(operator.option("axis", 0)), int(operator.option("batchDims", 0))
    places = indices.astype(int)
    if batches == 0:
        return [np.take(x, places, axis)]
    return [np.stack([np.take(a, b, axis - 1) for a, b in zip(x, places, strict=True)])]


def _gather_nd(_: Operator, x: Real, indices: Real) -> list[Real]:
    return [x[tuple(np.moveaxis(indices.astype(int), -1, 0))]]


def _updated(_: Operator, x: Real, update: Real, starts: Real) -> list[Real]:
    made = x.copy()
    begin = [min(max(at, 0), have - size) for at, have, size in zip(_whole(starts), x.shape, update.shape, strict=True)]
    made[tuple(slice(at, at + size) for at, size in zip(begin, update.shape, strict=True))] = update
    return [made]


def _cast(operator: Operator, x: Real) -> list[Real]:
    target = operator.outputs[0].dtype
    if target is DType.BOOL:
        return [(x != 0).astype(np.float64)]
    return [np.trunc(x) if target in _INTEGERS else x]


def _squeezed(operator: Operator, x: Real, *_: Real) -> list[Real]:
    return [x.reshape(operator.outputs[0].shape)]


def _one_hot(operator: Operator, indices: Real, depth: Real, on: Real, off: Real) -> list[Real]:
    assert int(operator.option("axis", -1)) == -1
    return [np.where(indices[..., None] == np.arange(int(depth)), on, off)]


def _top(_: Operator, x: Real, count: Real) -> list[Real]:
    order = np.argsort(-x, -1, kind="stable")[..., : int(count)]
    return [np.take_along_axis(x, order, -1), order.astype(np.float64)]


def _selected(_: Operator, which: Real, a: Real, b: Real) -> list[Real]:
    return [np.asarray(np.where(_beside(which, a) != 0, a, b), np.float64)]


def _beside(which: Real, values: Real) -> Real:
    """A vector of conditions selects rows (SELECT); elsewhere it broadcasts."""
    is_by_row = which.ndim == 1 and values.ndim > 1 and which.shape[0] == values.shape[0] != values.shape[-1]
    return which.reshape([-1, *[1] * (values.ndim - 1)]) if is_by_row else which


_CURVES: Mapping[str, Callable[..., Any]] = {
    "ABS": np.abs,
    "CEIL": np.ceil,
    "COS": np.cos,
    "DEQUANTIZE": lambda x: x,
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "EXP": np.exp,
    "FLOOR": np.floor,
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "L2_NORMALIZATION": lambda x: x / np.maximum(np.sqrt((x**2).sum(-1, keepdims=True)), 1e-6),
    "LOG": lambda x: np.log(np.maximum(x, 1e-300)),
    "LOGICAL_NOT": lambda x: (x == 0).astype(np.float64),
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "NEG": np.negative,
    "QUANTIZE": lambda x: x,
    "RANK": lambda x: np.asarray(float(x.ndim)),
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "ROUND": np.rint,
    "RSQRT": lambda x: 1 / np.sqrt(np.maximum(x, 1e-300)),
    "SHAPE": lambda x: np.asarray(x.shape, np.float64),
    "SIGN": np.sign,
    "SIN": np.sin,
    "SQRT": np.sqrt,
    "SQUARE": np.square,
    "TANH": np.tanh,
    "ZEROS_LIKE": np.zeros_like,
}
_PAIRS: Mapping[str, Callable[..., Any]] = {
    "ADD": np.add,
    "ADD_N": np.add,
    "ATAN2": np.arctan2,
    "DIV": np.divide,
    "EQUAL": np.equal,
    "FLOOR_DIV": lambda a, b: np.floor(a / b),
    "FLOOR_MOD": lambda a, b: a - np.floor(a / b) * b,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MUL": np.multiply,
    "NOT_EQUAL": np.not_equal,
    "POW": np.power,
    "PRELU": lambda x, slope: np.where(x >= 0, x, x * slope),
    "SQUARED_DIFFERENCE": lambda a, b: (a - b) ** 2,
    "SUB": np.subtract,
}
_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "MEAN": np.mean,
    "REDUCE_ALL": np.all,
    "REDUCE_ANY": np.any,
    "REDUCE_MAX": np.max,
    "REDUCE_MIN": np.min,
    "REDUCE_PROD": np.prod,
    "SUM": np.sum,
}
KINDS: Mapping[str, Kind] = {
    **{name: _unary(function) for name, function in _CURVES.items()},
    **{name: _binary(function) for name, function in _PAIRS.items()},
    **{name: _reduced(function) for name, function in _REDUCTIONS.items()},
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), _pool),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), _depth),
    **dict.fromkeys(("EXPAND_DIMS", "RESHAPE", "SQUEEZE"), _squeezed),
    **dict.fromkeys(("MIRROR_PAD", "PAD", "PADV2"), _padded),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resized),
    **dict.fromkeys(("SELECT", "SELECT_V2"), _selected),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX"), _softmax),
    "ARG_MAX": _argument(np.argmax),
    "ARG_MIN": _argument(np.argmin),
    "BATCH_MATMUL": _matmul,
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "BROADCAST_ARGS": lambda _, a, b: [np.asarray(np.broadcast_shapes(tuple(_whole(a)), tuple(_whole(b))), np.float64)],
    "BROADCAST_TO": lambda _, x, shape: [np.broadcast_to(x, _whole(shape)).copy()],
    "CAST": _cast,
    "CONCATENATION": lambda operator, *parts: [np.concatenate(parts, int(operator.option("axis", 0)))],
    "CONV_2D": _convolution,
    "CUMSUM": _cumsum,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DYNAMIC_UPDATE_SLICE": _updated,
    "EMBEDDING_LOOKUP": lambda _, indices, table: [table[indices.astype(int)]],
    "FILL": lambda _, shape, value: [np.full(_whole(shape), value.ravel()[0])],
    "FULLY_CONNECTED": _dense,
    "GATHER": _gather,
    "GATHER_ND": _gather_nd,
    "GELU": _gelu,
    "LEAKY_RELU": _leaky,
    "ONE_HOT": _one_hot,
    "PACK": lambda operator, *parts: [np.stack(parts, int(operator.option("axis", 0)))],
    "RANGE": lambda _, first, last, by: [np.arange(first.ravel()[0], last.ravel()[0], by.ravel()[0])],
    "REVERSE_V2": lambda _, x, axes: [np.flip(x, _axes(x, axes))],
    "SLICE": _sliced,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "STRIDED_SLICE": _strided,
    "TILE": lambda _, x, times: [np.tile(x, _whole(times))],
    "TOPK_V2": _top,
    "TRANSPOSE": lambda _, x, order: [x.transpose(_whole(order))],
    "TRANSPOSE_CONV": _transposed,
    "UNPACK": lambda operator, x: [
        np.take(x, at, int(operator.option("axis", 0))) for at in range(len(operator.outputs))
    ],
}
