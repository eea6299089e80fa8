"""Kinds of operators that move values, or compute integers that steer others: as numpy does it, on whatever elements.

Nothing is clipped: an operator that reaches outside of a tensor is broken, whatever its kernel would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...model.ir.model import DType, Operator, Tensor
from . import tables
from .call import FLOATS, PLAIN, Call, CoarseError, is_float, quantization_of, zero_point
from .facts import INTEGER_ARITHMETIC, ROUNDED_ONCE, SAME_EITHER_WAY, SAME_QUANTIZATION, TABLE, WIDER_FLOAT
from .outcome import BrokenModelError
from .ring import Keys, Known, Ring, U, Value, is_ring

Values = list[Value]


def whole(call: Call) -> Values:
    """Return functions of everything: of kinds that nothing moves, cuts, or computes in advance."""
    return list(call.whole())


def reshaped(call: Call) -> Values:
    """RESHAPE, SQUEEZE, EXPAND_DIMS, by the output's shape, which an operand or option must not contradict."""
    value, shape = call.value(0), call.output.shape
    said = _said_shape(call)
    if said is not None and not _fits(said, shape):
        raise BrokenModelError(f"its shape is {list(shape)}, its operand or option says {list(said)}")
    if value.size != call.output.elements:
        raise BrokenModelError(f"it makes shape {list(shape)} of {value.size} elements")
    return [value.reshape(shape)]


def _said_shape(call: Call) -> tuple[int, ...] | None:
    name, old = call.operator.name, call.tensor(0).shape
    if name == "EXPAND_DIMS":
        (axis,) = call.known(1)[:1].tolist()
        axis = axis + len(old) + 1 if axis < 0 else axis
        if not 0 <= axis <= len(old):
            raise BrokenModelError(f"it adds a dimension at {axis} to {len(old)}")
        return (*old[:axis], 1, *old[axis:])
    if name == "SQUEEZE":
        dims = {axis_of(axis, len(old)) for axis in _numbers(call, "squeezeDims")}
        wrong = [axis for axis in dims if old[axis] != 1]
        if wrong:
            raise BrokenModelError(f"it leaves out dimension {wrong[0]}, which is {old[wrong[0]]}")
        return tuple(size for axis, size in enumerate(old) if (axis not in dims if dims else size != 1))
    if call.has(1):
        return tuple(call.known(1).tolist())
    said = _numbers(call, "newShape")
    if said not in ((), (0,)):
        return said
    if call.tensor(0).elements != 1:
        raise BrokenModelError("it has no shape, as an operand or as an option")
    return None  # a scalar, which older converters write so


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front. Raises BrokenModelError where there is none."""
    if not -rank <= axis < rank:
        raise BrokenModelError(f"it has no axis {axis}: its input has {rank} dimensions")
    return axis % rank


def _makes(call: Call, shape: tuple[int, ...]) -> None:
    """Look at a shape before anything of it is made. Raises BrokenModelError where it is not the output's."""
    if shape != call.output.shape:
        raise BrokenModelError(f"it makes {list(shape)}, its output has {list(call.output.shape)}")


def _numbers(call: Call, name: str) -> tuple[int, ...]:
    found = call.option(name)
    return () if found is None else tuple(np.ravel(found).astype(int).tolist())


def _fits(said: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    may_fit = len(said) == len(shape) and said.count(-1) <= 1
    return may_fit and all(a in (-1, b) for a, b in zip(said, shape, strict=True))


def cut(call: Call) -> Values:
    """SLICE."""
    x, begin, size = call.value(0), call.known(1).tolist(), call.known(2).tolist()
    if not len(begin) == len(size) == x.ndim:
        raise BrokenModelError("its begin or size has another rank than its input")
    ends = [full if count == -1 else first + count for first, count, full in zip(begin, size, x.shape, strict=True)]
    for axis, (first, end, full) in enumerate(zip(begin, ends, x.shape, strict=True)):
        if not 0 <= first <= end <= full:
            raise BrokenModelError(f"it reads [{first}, {end}) of dimension {axis}, which has {full}")
    return [x[tuple(map(slice, begin, ends))]]


def strided_cut(call: Call) -> Values:
    """STRIDED_SLICE: ends beyond a dimension mean its end, as in Python; how many elements result is checked."""
    x, limits = call.value(0), [call.known(slot).tolist() for slot in (1, 2, 3)]
    return [x[strided_places(call.operator, x.shape, limits)]]


def strided_places(
    operator: Operator, shape: Sequence[int], limits: Sequence[Sequence[int]]
) -> tuple[slice | int, ...]:
    """Return what STRIDED_SLICE takes of each dimension of a shape; ``limits``: its begins, ends, and strides.

    Its contract leaves no other masks than these. Raises BrokenModelError for more dimensions than the shape has, for a
    stride of 0, and for one element of a dimension that lies outside of it.
    """
    masks = [int(operator.option(name, 0)) for name in ("beginMask", "endMask", "shrinkAxisMask")]
    places: list[slice | int] = []
    for axis, (first, last, by) in enumerate(zip(*limits, strict=True)):
        is_open, is_open_behind, is_one = (mask >> axis & 1 for mask in masks)
        if axis >= len(shape) or by == 0:
            raise BrokenModelError("it has more dimensions than its input, or a stride of 0")
        if not is_one:
            places.append(slice(None if is_open else first, None if is_open_behind else last, by))
        elif -shape[axis] <= first < shape[axis]:
            places.append(first)
        else:
            raise BrokenModelError(f"it reads {first} of dimension {axis}, which has {shape[axis]}")
    return tuple(places)


def updated(call: Call) -> Values:
    """DYNAMIC_UPDATE_SLICE. Kernels clamp where it begins; a sound model does not need that."""
    begin, update = call.known(2).tolist(), call.ring(1)
    x = call.ring(0)
    if not len(begin) == x.ndim == update.ndim:
        raise BrokenModelError("its operands have different ranks")
    for axis, (first, count, full) in enumerate(zip(begin, update.shape, x.shape, strict=True)):
        if not 0 <= first <= first + count <= full:
            raise BrokenModelError(f"it writes [{first}, {first + count}) of dimension {axis}, which has {full}")
    x = x.copy()
    x[tuple(slice(first, first + count) for first, count in zip(begin, update.shape, strict=True))] = update
    return [x]


def joined(call: Call) -> Values:
    """CONCATENATION. A part of another quantization is rescaled."""
    axis, output = int(call.option("axis")), call.output
    parts = _alike(call, [_rescaled(call, slot) for slot in range(len(call.values))])
    if not -len(output.shape) <= axis < len(output.shape):
        raise BrokenModelError(f"it has no axis {axis}")
    return [np.concatenate(parts, axis)]


def _alike(call: Call, values: Values) -> Values:
    """Values that go into one: as ring elements, unless all are known."""
    return list(map(call.keys.constant, values)) if any(map(is_ring, values)) else values


def _rescaled(call: Call, slot: int) -> Value:
    tensor, output = call.tensor(slot), call.output
    if quantization_of(tensor) == quantization_of(output) or is_float(tensor):
        return call.value(slot)
    return call.hashed(call.ring(slot), call.keys.word("joined", quantization_of(tensor), quantization_of(output)))


def activated(call: Call, x: Ring, activation: int) -> Ring:
    """A fused activation, as a function of each element. Without one, kernels clamp floats to the finite ones."""
    if not activation and (call.keys.is_finite or not call.is_float):
        return x
    word = call.keys.word("activation", activation, call.output.dtype.name, quantization_of(call.output))
    return call.hashed(x, word)


def stacked(call: Call) -> Values:
    """PACK."""
    values = [call.value(slot) for slot in range(len(call.values))]
    if int(call.option("valuesCount", 0)) != len(values):
        raise CoarseError
    return [np.stack(_alike(call, values), int(call.option("axis")))]


def unstacked(call: Call) -> Values:
    """UNPACK."""
    if int(call.option("num", 0)) != len(call.operator.outputs):
        raise CoarseError
    return list(np.moveaxis(call.value(0), int(call.option("axis")), 0))


def split(call: Call) -> Values:
    """SPLIT and SPLIT_V, whose sizes must fill the dimension."""
    is_even = call.operator.name == "SPLIT"
    x, (axis,) = call.value(int(is_even)), call.known(0 if is_even else 2).tolist()
    if not -x.ndim <= axis < x.ndim:
        raise BrokenModelError(f"it has no axis {axis}")
    full, outputs = x.shape[axis], call.operator.outputs
    said = int(call.option("numSplits", 0))
    if said != len(outputs):
        raise BrokenModelError(f"it says {said} parts and has {len(outputs)}")  # kernels refuse it
    if is_even:
        sizes = [full // len(outputs)] * len(outputs)
    else:
        sizes = call.known(1).tolist()
        sizes = [full - sum(sizes) - 1 if size == -1 else size for size in sizes]
    if sum(sizes) != full or min(sizes) < 0 or len(sizes) != len(outputs):
        raise BrokenModelError(f"its parts of {sizes} are not the {full} of dimension {axis}")
    return np.split(x, list(accumulate(sizes))[:-1], axis)


def padded(call: Call) -> Values:
    """PAD and PADV2."""
    amounts = _amounts(call)
    _makes(call, tuple(sum(pair) + size for pair, size in zip(amounts, call.tensor(0).shape, strict=True)))
    filler: Any = call.ring(2).ravel()[0] if call.has(2) else U(zero_point(call.output) % (1 << 64))
    return [np.pad(call.ring(0), amounts, constant_values=filler)]


def _amounts(call: Call) -> list[tuple[int, int]]:
    pairs = call.known(1).reshape(-1, 2).tolist()
    if len(pairs) != len(call.tensor(0).shape) or min((min(pair) for pair in pairs), default=0) < 0:
        raise BrokenModelError("its paddings are negative, or of another rank")
    return [(before, after) for before, after in pairs]


def mirrored(call: Call) -> Values:
    """MIRROR_PAD."""
    mode, pairs, shape = int(call.option("mode")), _amounts(call), call.tensor(0).shape
    if any(max(pair) > size - (mode == 0) for pair, size in zip(pairs, shape, strict=True)):
        raise BrokenModelError("it mirrors more than there is")
    return [np.pad(call.value(0), pairs, mode="reflect" if mode == 0 else "symmetric")]


def transposed(call: Call) -> Values:
    """TRANSPOSE."""
    order, rank = call.known(1).tolist(), len(call.tensor(0).shape)
    if sorted(order) != list(range(rank)):
        raise BrokenModelError(f"{order} is no order of {rank} dimensions")
    return [np.transpose(call.value(0), order)]


def reversed_along(call: Call) -> Values:
    """REVERSE_V2."""
    return [np.flip(call.value(0), tuple(call.known(1).tolist()))]


def tiled(call: Call) -> Values:
    """TILE."""
    x, times = call.value(0), call.known(1).tolist()
    if len(times) != x.ndim or min(times, default=1) < 1:
        raise BrokenModelError(f"it repeats {times} times what has {x.ndim} dimensions")
    _makes(call, tuple(size * count for size, count in zip(x.shape, times, strict=True)))
    return [np.tile(x, times)]


def broadcast(call: Call) -> Values:
    """BROADCAST_TO."""
    return [np.broadcast_to(call.value(0), call.output.shape)]


def filled(call: Call) -> Values:
    """FILL."""
    return [np.broadcast_to(call.value(1).reshape(-1)[0], call.output.shape)]


def gathered(call: Call) -> Values:
    """GATHER. With unknown positions: a function of the position and of the slices to pick from, in their order."""
    x, rank = call.value(0), len(call.tensor(0).shape)
    axis, batch = axis_of(int(call.option("axis")), rank), int(call.option("batchDims"))
    positions = call.value(1)
    if is_ring(positions):
        if batch:
            raise CoarseError
        table = call.keys.digest(np.moveaxis(call.ring(0), axis, -1))
        head, tail = table.shape[:axis], table.shape[axis:]
        left = call.keys.hash(positions, "position").reshape((1,) * len(head) + positions.shape + (1,) * len(tail))
        right = table.reshape(*head, *(1,) * positions.ndim, *tail)
        return [call.hashed(left + right, call.parameters("axis"))]
    picks = positions.astype(np.int64)
    if picks.size and not 0 <= picks.min() <= picks.max() < x.shape[axis]:
        raise BrokenModelError(
            f"it picks {picks.min()} to {picks.max()} of dimension {axis}, which has {x.shape[axis]}"
        )
    if not batch:
        return [np.take(x, picks, axis)]
    if batch != 1:
        raise CoarseError
    return [np.stack([np.take(each, pick, axis - 1) for each, pick in zip(x, picks, strict=True)])]


def space_to_batch(call: Call) -> Values:
    """SPACE_TO_BATCH_ND, padded with the zero point."""
    x, blocks = call.ring(0), call.known(1).tolist()
    pairs, dims = call.known(2).reshape(-1, 2).tolist(), len(blocks)
    filler = U(zero_point(call.output) % (1 << 64))
    _check_blocks(call, blocks, pairs)
    padded = [sum(pair) + size for pair, size in zip(pairs, x.shape[1:], strict=False)]
    if any(size % block for size, block in zip(padded, blocks, strict=True)):
        raise BrokenModelError("its blocks do not divide what is padded")
    batches = x.shape[0] * int(np.prod(blocks))
    sizes = (size // block for size, block in zip(padded, blocks, strict=True))
    _makes(call, (batches, *sizes, *x.shape[1 + dims :]))
    rest = [(0, 0)] * (x.ndim - 1 - dims)
    x = np.pad(x, [(0, 0), *map(tuple, pairs), *rest], constant_values=filler)
    return [by_place_in_block(x, blocks).reshape(call.output.shape)]


def by_place_in_block(x: Any, blocks: Sequence[int]) -> Any:
    """Return the dimensions behind the first one in blocks: for each place in a block what all blocks have there."""
    dims, shape = len(blocks), [x.shape[0]]
    for size, block in zip(x.shape[1:], blocks, strict=False):
        shape += [size // block, block]
    x = x.reshape(*shape, *x.shape[1 + dims :])
    return x.transpose(*range(2, 2 * dims + 1, 2), 0, *range(1, 2 * dims + 1, 2), *range(2 * dims + 1, x.ndim))


def _check_blocks(call: Call, blocks: list[int], pairs: list[list[int]]) -> None:
    if len(blocks) != call.value(0).ndim - 2 or len(pairs) != len(blocks) or min(blocks) < 1:
        raise BrokenModelError(f"blocks of {blocks} do not fit its input")
    if min(map(min, pairs)) < 0:
        raise BrokenModelError("its paddings or crops are negative")


def batch_to_space(call: Call) -> Values:
    """BATCH_TO_SPACE_ND."""
    x, blocks = call.value(0), call.known(1).tolist()
    crops, dims = call.known(2).reshape(-1, 2).tolist(), len(blocks)
    _check_blocks(call, blocks, crops)
    if x.shape[0] % int(np.prod(blocks)):
        raise BrokenModelError("its blocks do not divide its batches")
    batch = x.shape[0] // int(np.prod(blocks))
    y = x.reshape(*blocks, batch, *x.shape[1:])
    order = [dims]
    for axis in range(dims):
        order += [dims + 1 + axis, axis]
    y = y.transpose(*order, *range(2 * dims + 1, y.ndim))
    sizes = [size * block for size, block in zip(x.shape[1:], blocks, strict=False)]
    y = y.reshape(batch, *sizes, *x.shape[1 + dims :])
    if any(min(pair) < 0 or sum(pair) > size for pair, size in zip(crops, sizes, strict=True)):
        raise BrokenModelError("it crops more than there is")
    kept = (slice(low, size - high) for (low, high), size in zip(crops, sizes, strict=True))
    place = (slice(None), *kept)
    return [y[place]]


def space_to_depth(call: Call) -> Values:
    """SPACE_TO_DEPTH."""
    block, (n, h, w, c) = int(call.option("blockSize", 1)), _image(call)
    if h % block or w % block:
        raise BrokenModelError("its blocks do not divide its input")
    x = call.value(0).reshape(n, h // block, block, w // block, block, c).transpose(0, 1, 3, 2, 4, 5)
    return [x.reshape(n, h // block, w // block, block * block * c)]


def depth_to_space(call: Call) -> Values:
    """DEPTH_TO_SPACE."""
    block, (n, h, w, c) = int(call.option("blockSize", 1)), _image(call)
    if c % (block * block):
        raise BrokenModelError("its blocks do not divide its channels")
    x = call.value(0).reshape(n, h, w, block, block, c // block // block).transpose(0, 1, 3, 2, 4, 5)
    return [x.reshape(n, h * block, w * block, c // block // block)]


def _image(call: Call) -> tuple[int, ...]:
    shape = call.value(0).shape
    if len(shape) != 4:
        raise BrokenModelError("its input is no image")
    return shape


def resized_by_nearest(call: Call) -> Values:
    """RESIZE_NEAREST_NEIGHBOR: the rows and columns that reference/resize_nearest_neighbor.h picks, in float32."""
    rows, columns = sizes_of(call)
    _, h, w, _ = _image(call)
    picked = call.value(0)[:, nearest_positions(call.operator, h, rows)]
    return [picked[:, :, nearest_positions(call.operator, w, columns)]]


def sizes_of(call: Call) -> tuple[int, int]:
    """Return the rows and columns that an image is resized to."""
    n, _, _, c = _image(call)
    rows, columns = call.known(1).tolist()
    _makes(call, (n, rows, columns, c))
    return rows, columns


def nearest_positions(operator: Operator, size: int, count: int) -> Known:
    """Return the row or column of the input that each one of the output is, as reference/resize_nearest_neighbor.h."""
    align, half = bool(operator.option("alignCorners")), bool(operator.option("halfPixelCenters"))
    f = np.float32
    scale = f(size - 1) / f(count - 1) if align and count > 1 else f(size) / f(count)
    at = (np.arange(count, dtype=f) + f(0.5 if half else 0)) * scale
    index = np.trunc(at + np.copysign(f(0.5), at)) if align else np.floor(at)
    found: Known = np.clip(index.astype(np.int64), 0, size - 1)
    return found


def selected(call: Call) -> Values:
    """SELECT_V2, and SELECT of operands of one shape."""
    if call.operator.name == "SELECT" and call.value(0).ndim == 1 != call.value(1).ndim:
        raise CoarseError
    if not is_ring(call.value(0)):
        x, y = _alike(call, [call.value(1), call.value(2)])
        return [np.where(call.value(0).astype(bool), x, y)]
    condition, x, y = (call.ring(slot) for slot in range(3))
    if is_plain_integer(call):  # the condition is 0 or 1
        call.lean_on(INTEGER_ARITHMETIC)
        call.notes.integer_bits += 32
        apart = x - y
        is_known = (apart + U(1 << 31)) < U(1 << 32)
        return [np.where(is_known, y + condition * apart, either(call, condition, x, y))]
    return [either(call, condition, x, y)]


def is_plain_integer(call: Call) -> bool:
    """Return whether integers of 32 bits are computed without rescaling."""
    tensors = (*call.operator.present_inputs(), call.output)
    is_plain = all(tensor.dtype in (DType.BOOL, DType.INT32) and not quantization_of(tensor)[0] for tensor in tensors)
    return is_plain and not call.option("fusedActivationFunction")


def either(call: Call, condition: Ring, x: Ring, y: Ring) -> Ring:
    """One of two values by an unknown condition: a function of all three, or the one value that both are."""
    call.lean_on(SAME_EITHER_WAY)
    keys = call.keys
    mixed = keys.hash(condition, "condition") + keys.hash(x, "then") + keys.hash(y, "else")
    return np.where(x == y, x, keys.as_float(keys.hash(mixed, "either")))


def converted(call: Call) -> Values:
    """CAST, QUANTIZE and DEQUANTIZE; between equal types nothing happens."""
    source, output = call.tensor(0), call.output
    is_same = source.dtype is output.dtype and quantization_of(source) == quantization_of(output)
    if is_same and (call.operator.name == "CAST" or not is_float(source)):
        call.lean_on(SAME_QUANTIZATION)
        return [call.value(0)]
    value = call.value(0)
    if call.operator.name == "CAST" and not is_ring(value) and value.dtype.kind in "iub" and output.dtype in INTEGERS:
        return [wrapped(value.astype(np.int64), output.dtype)]
    if call.operator.name == "CAST" and source.dtype is DType.BOOL and output.dtype is DType.INT32:
        call.lean_on(INTEGER_ARITHMETIC)
        return [value.copy()]  # its bytes are others
    if call.operator.name == "DEQUANTIZE" and not is_ring(value) and source.dtype is DType.FLOAT16:
        call.lean_on(WIDER_FLOAT)
        return [value.astype(np.float32)]
    if call.operator.name == "DEQUANTIZE" and not is_ring(value) and value.dtype.kind in "iu":
        call.lean_on(ROUNDED_ONCE)
        return [tables.real_of(value, quantization_of(source))]
    if tables.conversion_of(call.operator.name, source, output) is not None:
        call.lean_on(TABLE)
    return [conversion(call.keys, call.operator.name, call.ring(0), source, output)]


def conversion(keys: Keys, name: str, x: Ring, source: Tensor, target: Tensor) -> Ring:
    """A conversion of each element, a function of both types and quantizations. ``name``: of the operator."""
    sides = tuple((tensor.dtype.name, quantization_of(tensor)) for tensor in (source, target))
    if any(max(len(scales), len(points)) > 1 for _, (scales, points, _) in sides):
        raise CoarseError

    def unknown(element: Ring) -> Ring:
        found = keys.hash(element, "conversion", name, sides)
        return keys.as_float(found) if is_float(target) else found

    function = tables.conversion_of(name, source, target)
    return unknown(x) if function is None else tables.mapped(keys, x, source.dtype, function, unknown)


INTEGERS = {dtype: plain for dtype, plain in PLAIN.items() if dtype not in FLOATS}


def wrapped(value: Known, dtype: DType) -> Known:
    """Integers in a type of fewer bits, as C converts them."""
    return value.astype(INTEGERS[dtype])


def shape_of(call: Call) -> Values:
    """SHAPE and RANK."""
    shape = call.tensor(0).shape
    found = np.asarray(len(shape) if call.operator.name == "RANK" else shape, np.int64)
    return [wrapped(found, call.output.dtype)]


def broadcast_shape(call: Call) -> Values:
    """BROADCAST_ARGS."""
    both = (tuple(call.known(slot).tolist()) for slot in (0, 1))
    return [wrapped(np.asarray(np.broadcast_shapes(*both), np.int64), call.output.dtype)]


def _quotient(a: Known, b: Known) -> Known:
    found: Known = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return found


_BINARY: Mapping[str, Callable[[Known, Known], Known]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": _quotient,
    "FLOOR_DIV": np.floor_divide,
    "FLOOR_MOD": np.mod,
    **{name.upper(): getattr(np, name) for name in ("maximum", "minimum", "equal", "not_equal", "less", "less_equal")},
    **{name.upper(): getattr(np, name) for name in ("greater", "greater_equal", "logical_and", "logical_or")},
}
_UNARY: Mapping[str, Callable[[Known], Known]] = {"NEG": np.negative, "ABS": np.abs, "LOGICAL_NOT": np.logical_not}
_REDUCED: Mapping[str, Callable[..., Known]] = {
    "SUM": np.sum,
    "REDUCE_PROD": np.prod,
    "REDUCE_MAX": np.max,
    "REDUCE_MIN": np.min,
    "REDUCE_ANY": np.any,
    "REDUCE_ALL": np.all,
}
COUNTS = frozenset({*_BINARY, *_UNARY, *_REDUCED})
"""Kinds that compute known integers of known ones."""


def count(call: Call) -> Values | None:
    """Known integers of known ones, as C computes them; None where operands are unknown or quantized."""
    name, tensors = call.operator.name, [*call.operator.present_inputs(), *call.operator.outputs]
    values = [value for value in call.values if value is not None]
    if any(is_ring(value) or value.dtype.kind not in "iub" for value in values) or call.output.dtype not in INTEGERS:
        return None
    if any(quantization_of(tensor)[0] for tensor in tensors) or call.option("fusedActivationFunction"):
        return None
    wide = [value.astype(np.int64) for value in values]
    if name in _BINARY and not (name in ("DIV", "FLOOR_DIV", "FLOOR_MOD") and (wide[1] == 0).any()):
        return [wrapped(np.asarray(_BINARY[name](wide[0], wide[1])), call.output.dtype)]
    if name in _UNARY:
        return [wrapped(np.asarray(_UNARY[name](wide[0])), call.output.dtype)]
    if name in _REDUCED:
        axes = tuple(wide[1].ravel().tolist())
        found = np.asarray(_REDUCED[name](wide[0], axis=axes))
        return [wrapped(found.reshape(call.output.shape), call.output.dtype)]
    return None
