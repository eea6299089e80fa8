"""Kinds of operators that add products: convolutions, dense layers, matrix products; and pools, means and other sums.

The sum itself is computed. So weights of zero, padding, and terms in another order are seen to be the same. What
happens to it, the bias of floats, rescaling and activation, is a function of the sum and of the channel's parameters.

A term of a float sum is weighted by a random factor that its place in the window has: kernels go through a window from
its first element to its last, and floats in another order give another sum. In sums of real numbers it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import floor, log2, prod
from typing import Any

import numpy as np

from ...model.ir.model import DType, OpCode, Operator, Tensor
from . import facts, tables
from .call import Call, CoarseError, is_float, quantization_of, zero_point
from .moves import activated, axis_of, is_plain_integer, sizes_of
from .outcome import BrokenModelError
from .ring import FIELD, WRAPPING, Arithmetic, Ring, U, Value, is_ring

_FLOAT_BITS = 16.0
"""That the products of three random factors in a sum of floats, or of two computed values, may lose."""
_CHUNK = 1 << 22
"""Elements of windows that are laid out at a time."""
_MOST_PADDED, _MOST_TAPS, _MOST_TIMES = 1 << 22, 1 << 12, 4
"""Elements of an image with its padding, and of a window, that are followed: so many, or times those of the image."""
Values = list[Value]


@dataclass(frozen=True)
class Side:
    """A window along one axis: output element i reads ``i * stride - before + tap * dilation``."""

    size: int
    count: int
    taps: int
    stride: int
    dilation: int
    before: int

    @property
    def padding(self) -> tuple[int, int]:
        """Return the elements by which windows reach beyond both ends."""
        behind = (self.count - 1) * self.stride + (self.taps - 1) * self.dilation + 1 - self.before - self.size
        return self.before, max(0, behind)

    def at(self, tap: int, first: int = 0, count: int | None = None) -> slice:
        """Return the positions of this tap in the padded input, for outputs [first, first + count)."""
        count = self.count - first if count is None else count
        start = tap * self.dilation + first * self.stride
        return slice(start, start + (count - 1) * self.stride + 1, self.stride)


def side(size: int, count: int, taps: int, stride: int, dilation: int, is_same: bool) -> Side:
    """As tensorflow/lite/kernels/padding.h has it. Raises BrokenModelError where the output has another size."""
    reach = (taps - 1) * dilation + 1
    if min(stride, dilation, taps) < 1 or count != (
        -(-size // stride) if is_same else -(-(size - reach + 1) // stride)
    ):
        raise BrokenModelError(f"windows of {reach} with stride {stride} do not make {count} of {size}")
    before = max(0, (count - 1) * stride + reach - size) // 2 if is_same else 0
    return Side(size, count, taps, stride, dilation, before)


def _is_same(call: Call) -> bool:
    padding = int(call.option("padding"))
    if padding not in (0, 1):
        raise BrokenModelError(f"it has no padding {padding}")
    return padding == 0


def _sides(call: Call, x: tuple[int, ...], taps: tuple[int, int]) -> tuple[Side, Side]:
    shape = call.output.shape
    if len(x) != 4 or len(shape) != 4:
        raise BrokenModelError("its input or output is no image")
    is_same, strides = _is_same(call), (int(call.option("strideH", 1)), int(call.option("strideW", 1)))
    dilations = int(call.option("dilationHFactor", 1)), int(call.option("dilationWFactor", 1))
    high, wide = (side(x[at + 1], shape[at + 1], taps[at], strides[at], dilations[at], is_same) for at in (0, 1))
    padded = prod(each.size + sum(each.padding) for each in (high, wide)) * x[0] * x[3]
    if padded > max(_MOST_PADDED, _MOST_TIMES * prod(x)) or prod(taps) > max(_MOST_TAPS, _MOST_TIMES * x[1] * x[2]):
        raise CoarseError  # a few bytes of a file may ask for windows of any size
    return high, wide


def _around(x: Ring, high: Side, wide: Side) -> Ring:
    pairs = (high.padding, wide.padding)
    return np.pad(x, ((0, 0), *pairs, (0, 0))) if any(map(any, pairs)) else x


@dataclass(frozen=True)
class Factors:
    """The factors of the products: the data, and the weights in the order of the kernel, taps before channels.

    ``weights``: (outputs, height, width, inputs). ``row``: what the data's quantization depends on, where that is done
    while it runs: one element for each batch or row. ``arithmetic``: of their products and sums.
    """

    data: Ring
    weights: Ring
    row: Ring | None = None
    arithmetic: Arithmetic = WRAPPING


def factors(call: Call, data: int, weights: int, order: Ring, rows: int) -> Factors:
    """Compute the factors of the products that an operator sums.

    ``order``: one factor per term of a float sum, broadcast to the weights. ``rows``: the number of parts of the data
    that a hybrid kernel quantizes separately.
    """
    keys, x, w = call.keys, call.tensor(data), call.tensor(weights)
    if w.dtype is DType.UINT8 or call.operator.name == "FULLY_CONNECTED":
        zero = zero_point(w)
    elif any(quantization_of(w)[1]):
        raise CoarseError  # kernels of signed weights take their zero point to be 0
    else:
        zero = 0
    call.lean_on(facts.WINDOW, facts.ZERO_TAP)
    kept = ("weights", data, weights)
    if is_ring(call.value(weights)):
        return _of_values(call, data, weights, order, zero)
    if is_float(w):
        values = call.value(weights)
        if not is_float(x) or not np.isfinite(values.astype(np.float64)).all():
            raise CoarseError
        made = call.kept(kept, lambda: ordered(call, weights_of(call, values), order), weights)
        return Factors(sealed(call, data), made, arithmetic=call.arithmetic)
    call.lean_on(facts.SUM_OF_INTEGERS)
    call.loses(call.kept(("bits", weights), lambda: _bits_of(call, weights, zero), weights))
    made = call.kept(kept, lambda: call.ring(weights) - U(zero % (1 << 64)), weights)
    if not is_float(x):
        return Factors(call.centered(data), made)
    # The kernel quantizes floats while it runs: each by itself and by the largest of all in its row.
    parts = call.ring(data).reshape(rows, -1)
    is_zero = (parts == 0) & keys.is_finite
    row = keys.hash(np.where(is_zero, U(0), keys.hash(parts, "sealed")).sum(1, dtype=U), "row")
    found = np.where(is_zero, U(0), keys.hash(parts + row[:, None], "quantized by row"))
    return Factors(found.reshape(x.shape), made, row)


def _bits_of(call: Call, slot: int, zero: int) -> float:
    """Bits that a difference of two sums may lose: its coefficients are at most twice the weights of a channel."""
    values = np.abs(call.value(slot).astype(np.int64) - zero)
    channels = values.reshape(-1, values.shape[3]).T if call.operator.name == "DEPTHWISE_CONV_2D" else values
    return log2(2 * float(channels.reshape(len(channels), -1).sum(1).max(initial=1)))


def sealed(call: Call, slot: int) -> Ring:
    """Floats as factors of products. Those that are sums of real numbers are hashed, so that no power of one occurs."""
    x = call.addend(slot)
    return x if call.keys.ordered else np.where(x == 0, U(0), call.keys.as_float(call.keys.hash(x, "sealed")))


def weights_of(call: Call, values: Value) -> Ring:
    """Constants as factors of products. One that is 0 makes 0 of what is finite, and of infinity no number."""
    keys, found = call.keys, call.keys.constant(values)
    if keys.is_finite:
        return np.where(values == 0, U(0), found)
    zeros = np.where(np.signbit(values), U(0) - keys.zero_weight, keys.zero_weight)
    return np.where(values == 0, zeros, found)


def ordered(call: Call, weights: Ring, order: Ring) -> Ring:
    """Factors of products that tell the order of the sum; real numbers are in none."""
    return weights * order if call.keys.ordered else weights


def _of_values(call: Call, data: int, weights: int, order: Ring, zero: int) -> Factors:
    """Weights that are computed: a product is one of two random functions, so that no square occurs."""
    if is_float(call.tensor(data)) != is_float(call.tensor(weights)):
        raise CoarseError
    x = _side(call, call.centered(data), "left")
    w = _side(call, call.ring(weights) - U(zero % (1 << 64)), "right")
    call.loses(_FLOAT_BITS)
    return Factors(x, ordered(call, w, order) if call.is_float else w, arithmetic=call.arithmetic)


def _side(call: Call, x: Ring, name: str) -> Ring:
    """A side of a product of two computed values: a function of its own of each, so that no square occurs."""
    found = call.keys.hash(x, name)
    if not call.is_float:
        return np.where(x == 0, U(0), found)
    found = call.keys.as_float(found)
    is_zero = (x == 0) | ((x == call.keys.minus_zero) & (not call.keys.ordered))
    return np.where(is_zero, U(0), found) if call.keys.is_finite else found


def finished(call: Call, total: Ring, made: Factors, slots: tuple[int, int, int]) -> Ring:
    """The output of a sum of products for each channel, the last axis; ``slots``: of data, weights and bias."""
    data, weights, bias = slots
    activation = int(call.option("fusedActivationFunction"))
    has_bias = call.has(bias)
    if not is_float(call.tensor(data)):
        return _requantized(call, total, slots, activation)
    if made.row is not None:
        row = made.row.reshape(-1, *(1,) * (total.ndim - 1))
        summed = call.hashed(total + row, _channel_words(call, data, weights, None))
    elif call.keys.ordered:
        call.lean_on(facts.DENSE_PIXEL, facts.NEVER_MINUS_ZERO)
        name = "dense" if call.operator.name in ("CONV_2D", "FULLY_CONNECTED") else call.operator.name
        terms = made.weights.size // max(1, call.output.shape[-1])
        found = call.keys.hash_by(total, U(call.keys.word(name, terms)), _FLOAT_BITS)
        summed = np.where(total == 0, U(0), found | U(1))  # of zeros alone it is +0
    else:
        summed = total
    return activated(call, added(call, summed, call.addend(bias).ravel()) if has_bias else summed, activation)


def _requantized(call: Call, total: Ring, slots: tuple[int, int, int], activation: int) -> Ring:
    """Integers: the bias is added to the sum; the rest is by the channel's scale."""
    data, weights, bias = slots
    width = None  # of the accumulator, which the bias tells where data has 16 bits
    if call.has(bias):
        total = total + call.ring(bias).ravel()
        width = call.tensor(bias).dtype.name
    more = (activation, width if call.tensor(data).dtype is DType.INT16 else None)
    words = call.kept(("channels", weights), lambda: _channel_words(call, data, weights, more))
    return call.hashed(total, words)


def _channel_words(call: Call, data: int, weights: int, more: Any) -> Ring:
    """A word for each channel: of its scale, and of what all channels have in common."""
    x, w, output = call.tensor(data), call.tensor(weights), call.output
    scales, _, _ = quantization_of(w)
    has_several = w.quantization is not None and w.quantization.scale.size > 1
    is_dense = call.operator.name == "FULLY_CONNECTED"  # LiteRT has a kernel of its own for several scales
    if has_several and not is_dense:
        call.lean_on(facts.EQUAL_SCALES)
    sides = [(tensor.dtype.name, quantization_of(tensor)) for tensor in (x, output)]
    if len(sides[0][1][0]) > 1 or len(sides[1][1][0]) > 1:
        raise CoarseError
    options = (call.option("quantizedBiasType", None), call.option("asymmetricQuantizeInputs", None))
    common = (call.operator.name, is_dense and has_several, w.dtype.name, *sides, options, more)
    if max(1, len(scales)) not in (1, output.shape[-1]):
        raise CoarseError
    return np.broadcast_to(call.keys.words(scales or (None,), "rescaled", common), output.shape[-1:])


def added(call: Call, a: Ring, b: Ring) -> Ring:
    """The sum of two floats, either way round the same.

    -0 adds nothing to any number, +0 nothing to what is never -0, as the last bit says.
    """
    keys, one = call.keys, U(1)
    if not keys.ordered:
        return FIELD.plus(a, b)
    found: Ring = keys.hash(keys.hash(a, "addend") + keys.hash(b, "addend"), "float sum") & ~one
    if not keys.is_finite:  # what is clamped is no sum any more
        return found
    found = found | ((a | b | (a == 0) | (b == 0)) & one)
    found = np.where((b == keys.minus_zero) | ((b == 0) & (((a & one) == 1) | (a == 0))), a, found)
    return np.where((a == keys.minus_zero) | ((a == 0) & ((b & one) == 1)), b, found)


def convolution(call: Call) -> Values:
    """CONV_2D, in groups where its filters have fewer channels than its input."""
    x, w = call.tensor(0).shape, call.tensor(1).shape
    if len(w) != 4 or len(x) != 4 or 0 in (x[3], w[3]) or x[3] % w[3] or w[0] % (x[3] // w[3]):
        raise BrokenModelError(f"filters of shape {list(w)} do not fit an input of shape {list(x)}")
    outputs, kh, kw, depth = w
    high, wide = _sides(call, x, (kh, kw))
    made = factors(call, 0, 1, call.keys.order(kh * kw * depth).reshape(1, kh, kw, depth), x[0])
    data, groups = _around(made.data, high, wide), x[3] // depth
    each = outputs // groups
    flat = made.weights.reshape(outputs, -1)
    total = np.empty((x[0], high.count, wide.count, outputs), U)
    rows = max(1, _CHUNK // max(1, x[0] * wide.count * flat.shape[1]))
    for first in range(0, high.count, rows):
        count = min(rows, high.count - first)
        for group in range(groups):
            part = data[..., group * depth : (group + 1) * depth]
            taps = [part[:, high.at(i, first, count), wide.at(j)] for i in range(kh) for j in range(kw)]
            windows = (taps[0] if len(taps) == 1 else np.concatenate(taps, -1)).reshape(-1, flat.shape[1])
            own = flat[group * each : (group + 1) * each]
            found = made.arithmetic.product(windows, np.ascontiguousarray(own.T))
            total[:, first : first + count, :, group * each : (group + 1) * each] = found.reshape(
                x[0], count, wide.count, each
            )
    return [finished(call, total, made, (0, 1, 2))]


def depthwise(call: Call) -> Values:
    """DEPTHWISE_CONV_2D: an output channel reads one input channel."""
    x, w = call.tensor(0).shape, call.tensor(1).shape
    if len(w) != 4 or len(x) != 4 or w[0] != 1 or not x[3] or w[3] % x[3]:
        raise BrokenModelError(f"filters of shape {list(w)} do not fit an input of shape {list(x)}")
    _, kh, kw, outputs = w
    high, wide = _sides(call, x, (kh, kw))
    made = factors(call, 0, 1, call.keys.order(kh * kw).reshape(1, kh, kw, 1), x[0])
    times = outputs // x[3]
    data = _around(made.data, high, wide)
    data = np.repeat(data, times, 3) if times > 1 else data
    total = np.zeros((x[0], high.count, wide.count, outputs), U)
    for i in range(kh):
        for j in range(kw):
            part = made.arithmetic.times(data[:, high.at(i), wide.at(j)], made.weights[0, i, j])
            total = made.arithmetic.plus(total, part)
    return [finished(call, total, made, (0, 1, 2))]


def transposed_convolution(call: Call) -> Values:
    """TRANSPOSE_CONV: it writes where a convolution from its output to its input would read."""
    x, w, shape = call.tensor(2).shape, call.tensor(1).shape, call.output.shape
    if len(w) != 4 or len(x) != 4 or len(shape) != 4 or w[3] != x[3] or w[0] != shape[3]:
        raise BrokenModelError(f"filters of shape {list(w)} do not fit an input of shape {list(x)}")
    if tuple(call.known(0).tolist()) != shape:
        raise BrokenModelError(f"its shape is {list(shape)}, its operand says {call.known(0).tolist()}")
    outputs, kh, kw, depth = w
    is_same, strides = _is_same(call), (int(call.option("strideH", 1)), int(call.option("strideW", 1)))
    high, wide = (side(shape[a + 1], x[a + 1], w[a + 1], strides[a], 1, is_same) for a in (0, 1))
    made = factors(call, 2, 1, call.keys.order(kh * kw * depth).reshape(1, kh, kw, depth), x[0])
    canvas = np.zeros((x[0], sum(high.padding) + shape[1], sum(wide.padding) + shape[2], outputs), U)
    flat = made.data.reshape(-1, depth)
    for i in range(kh):
        for j in range(kw):
            found = made.arithmetic.product(flat, np.ascontiguousarray(made.weights[:, i, j].T))
            place = (slice(None), high.at(i), wide.at(j))
            canvas[place] = made.arithmetic.plus(canvas[place], found.reshape(*x[:3], outputs))
    total = canvas[:, high.before : high.before + shape[1], wide.before : wide.before + shape[2]]
    return [finished(call, total, made, (2, 1, 3))]


def dense(call: Call) -> Values:
    """FULLY_CONNECTED."""
    x, w = call.tensor(0), call.tensor(1)
    if len(w.shape) != 2 or not w.shape[1] or x.elements % w.shape[1]:
        raise BrokenModelError(f"weights of shape {list(w.shape)} do not fit an input of shape {list(x.shape)}")
    rows = x.elements // w.shape[1]
    made = factors(call, 0, 1, call.keys.order(w.shape[1])[None], rows)
    total = made.arithmetic.product(made.data.reshape(rows, -1), np.ascontiguousarray(made.weights.T))
    return [finished(call, total, made, (0, 1, 2)).reshape(call.output.shape)]


def matrix_product(call: Call) -> Values:
    """BATCH_MATMUL, with a transposed side or without."""
    keys, sides = call.keys, (call.tensor(0), call.tensor(1))
    if is_float(sides[0]) != is_float(sides[1]):
        raise CoarseError
    call.lean_on(facts.WINDOW, facts.ZERO_TAP)
    call.loses(_FLOAT_BITS)
    a, b = (_side(call, call.centered(slot), ("left", "right")[slot]) for slot in (0, 1))
    a = np.swapaxes(a, -1, -2) if call.option("adjX", False) else a
    b = np.swapaxes(b, -1, -2) if call.option("adjY", False) else b
    if a.shape[-1] != b.shape[-2]:
        raise BrokenModelError(f"it multiplies rows of {a.shape[-1]} by columns of {b.shape[-2]}")
    if call.is_float:
        a = ordered(call, a, keys.order(a.shape[-1]))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, (*batch, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    b = np.broadcast_to(b, (*batch, *b.shape[-2:])).reshape(-1, *b.shape[-2:])
    total = np.stack([call.arithmetic.product(x, np.ascontiguousarray(y)) for x, y in zip(a, b, strict=True)])
    total = total.reshape(*batch, *total.shape[1:])
    return [call.hashed(total, call.parameters("adjX", "adjY"))]


def sum_of(call: Call) -> Values:
    """ADD and SUB of floats that are not known, and of plain integers."""
    if is_plain_integer(call):
        call.lean_on(facts.INTEGER_ARITHMETIC)
        call.notes.integer_bits += 1
        a, b = call.ring(0), call.ring(1)
        return [a + b if call.operator.name == "ADD" else a - b]
    if not call.is_float:
        return elementwise(call)
    activation = int(call.option("fusedActivationFunction"))
    a, b = call.addend(0), call.addend(1)
    if call.operator.name == "SUB":
        if call.keys.ordered:
            return elementwise(call)
        return [activated(call, FIELD.minus(a, b), activation)]
    call.lean_on(facts.NEVER_MINUS_ZERO)
    return [activated(call, added(call, *np.broadcast_arrays(a, b)), activation)]


def product_of(call: Call) -> Values:
    """MUL; of plain integers by known ones the product itself, of floats the same either way round."""
    if is_plain_integer(call) and not (is_ring(call.value(0)) and is_ring(call.value(1))):
        call.lean_on(facts.INTEGER_ARITHMETIC)
        known = next(value for value in (call.value(0), call.value(1)) if not is_ring(value))
        call.notes.integer_bits += log2(2 + float(np.abs(known.astype(np.int64)).max(initial=0)))
        return [call.ring(0) * call.ring(1)]
    if not call.is_float:
        return elementwise(call)
    a, b = call.addend(0), call.addend(1)
    found = call.hashed(call.keys.hash(a, "factor") + call.keys.hash(b, "factor"), call.parameters())
    call.lean_on(facts.EITHER_WAY_ROUND)
    return [found if call.keys.ordered else np.where((a == 0) | (b == 0), U(0), found)]


def elementwise(call: Call) -> Values:
    """A function of the elements at one place of all inputs."""
    word = call.parameters()
    rings = [call.ring(slot) for slot in range(len(call.values)) if call.has(slot)]
    if len(rings) == 1:
        return [call.hashed(rings[0], word)]
    total: Ring = np.zeros(np.broadcast_shapes(*(ring.shape for ring in rings)), U)
    for slot, ring in enumerate(rings):
        total = total + call.keys.hash(ring, "operand", slot)
    return [call.hashed(total, word)]


def clamped(call: Call) -> Values:
    """RELU, RELU6, and RELU_N1_TO_1.

    RELU6 between integers of other scales or zero points is RELU, and then RELU6 of that, unless 6 is no limit.
    """
    name, source, output = call.operator.name, call.tensor(0), call.output
    is_alike = quantization_of(source) == quantization_of(output)
    if name != "RELU6" or is_alike or output.dtype not in _LARGEST or source.dtype is not output.dtype:
        return [_clamped(call, call.ring(0), source)]
    call.lean_on(facts.CLAMPED_AFTER)
    rectified, is_limited = call.kept("clamped", lambda: _of_clamps(call))
    found = call.hashed(call.ring(0), rectified)
    return [_clamped(call, found, output) if is_limited else found]


def _clamped(call: Call, x: Ring, source: Tensor) -> Ring:
    """An activation of what is like ``source``, by its table where it has one."""
    function = tables.clamp_of(call.operator.name, source, call.output)
    word = Call(replace(call.operator, inputs=(source,)), call.values, call.keys, call.notes).parameters()
    if function is None:
        return call.hashed(x, word)
    call.lean_on(facts.TABLE)
    return tables.mapped(call.keys, x, source.dtype, function, lambda element: call.hashed(element, word))


def _of_clamps(call: Call) -> tuple[int, bool]:
    """The word of a RELU between the quantizations of a RELU6, and whether 6 is a limit."""
    source, output = call.tensor(0), call.output
    scales, points, _ = quantization_of(output)
    if not len(scales) == len(points) == 1:
        raise CoarseError
    rectified = Call(Operator(OpCode("RELU"), (source,), (output,)), call.values, call.keys, call.notes)
    # As LiteRT and TFLM compute the integer for 6: a quotient in float32, rounded half away from zero.
    six = points[0] + floor(float(np.float32(6) / np.float32(scales[0])) + 0.5)
    return rectified.parameters(), six < _LARGEST[output.dtype]


def limited(call: Call) -> Values:
    """MAXIMUM and MINIMUM, of integers and known ones by their tables.

    Each element has the table of its own limit, so that parts of a tensor are what they are in the whole.
    """
    known = [slot for slot in (0, 1) if call.output.dtype in _LARGEST and not is_ring(call.value(slot))]
    if len(known) != 1:
        return elementwise(call)
    (at,), source = known, call.tensor(1 - known[0])
    x, limits = np.broadcast_arrays(call.ring(1 - at), call.value(at))
    every = np.unique(limits).tolist()
    if len(every) > _MOST_LIMITS:  # each has a table, of half a megabyte for 16 bits; parts with fewer may be unproved
        return elementwise(call)
    made: Ring = np.empty(x.shape, U)
    for limit in every:
        function = tables.limit_of(call.operator.name, source, call.tensor(at), call.output, limit)
        if function is None:  # whatever the limit
            return elementwise(call)
        own, word = limits == limit, call.keys.word("limited", call.parameters(), limit)
        made[own] = tables.mapped(call.keys, x[own], source.dtype, function, partial(call.hashed, word=word))
    call.lean_on(facts.TABLE)
    return [made]


_LARGEST = {DType.INT8: 127, DType.INT16: 32767}
_MOST_LIMITS = 256
"""As many as 8 bits have."""


def pool(call: Call) -> Values:
    """AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D: of what a window has of the image, and how much that is."""
    name, keys, x = call.operator.name, call.keys, call.addend(0)
    taps = int(call.option("filterHeight")), int(call.option("filterWidth"))
    high, wide = _sides(call, call.tensor(0).shape, taps)
    is_plain = not call.option("fusedActivationFunction") and quantization_of(call.tensor(0)) == quantization_of(
        call.output
    )
    if call.tensor(0).dtype is not call.output.dtype:
        raise CoarseError
    one = x[:, high.at(0), wide.at(0)] if taps == (1, 1) else None
    is_kept = not call.is_float or (name == "MAX_POOL_2D" and keys.is_finite)
    if one is not None and is_plain and name != "L2_POOL_2D" and is_kept:
        call.lean_on(facts.WINDOW_OF_ONE)
        return [one]
    call.lean_on(facts.WINDOW)
    is_max = name == "MAX_POOL_2D"
    if not call.is_float:
        call.lean_on(facts.UNORDERED if is_max else facts.SUM_OF_INTEGERS)
    is_average = name == "AVERAGE_POOL_2D"
    arithmetic = call.arithmetic if is_average else WRAPPING
    call.loses(log2(4 * taps[0] * taps[1]) + (_FLOAT_BITS if call.is_float else 0))
    data = _around(x if is_average else keys.hash(x, "pooled") | U(1), high, wide)
    inside = _around(np.ones((1, *x.shape[1:3], 1), U), high, wide)
    factor = keys.order(taps[0] * taps[1])  # of a maximum too: whether -0 or +0 comes first
    total = np.zeros((x.shape[0], high.count, wide.count, x.shape[3]), U)
    count = np.zeros((1, high.count, wide.count, 1), np.int64)
    for i in range(taps[0]):
        for j in range(taps[1]):
            at = (slice(None), high.at(i), wide.at(j))
            part = data[at] * factor[np.minimum(count, factor.size - 1)] if call.is_float and keys.ordered else data[at]
            total = arithmetic.plus(total, part)
            count += inside[at].astype(np.int64)
    if not is_max:
        total = total + keys.hash(count.astype(U), "count")
    word = call.parameters("padding", "strideH", "strideW", "filterHeight", "filterWidth")
    found = call.hashed(total, word)
    if one is not None and is_plain and is_average and keys.is_finite:
        call.lean_on(facts.WINDOW_OF_ONE)
        # A sum of one number and +0 is never -0.
        found = np.where((one & U(1)) == 1, one, found | U(1)) if keys.ordered else one
    return [found]


def reduction(call: Call) -> Values:
    """MEAN, SUM, REDUCE_MAX and the like, over known axes: of the elements, in the order in which they lie."""
    name, x, keep = call.operator.name, call.addend(0), bool(call.option("keepDims", False))
    if name in ("REDUCE_MAX", "REDUCE_MIN"):
        source, output = call.tensor(0), call.output
        if source.dtype in _LARGEST and quantization_of(source) == quantization_of(output):
            return [_extreme(call, x, source.dtype)]
        stored = tables.rising(call.keys, x) if call.is_float else None
        if stored is not None:
            of, dtype, table = stored
            return [tables.image_of(call.keys, _extreme(call, of, dtype), table)]
    rows, axes = _rows(call, x)
    is_sum = name in ("MEAN", "SUM")
    sealed_rows = rows if is_sum else call.keys.hash(rows, "reduced")
    call.loses(log2(4 * max(1, rows.shape[-1])) + (_FLOAT_BITS if call.is_float else 0))
    if (call.is_float and call.keys.ordered) or name == "REDUCE_PROD":
        total = WRAPPING.total(sealed_rows * call.keys.order(rows.shape[-1]))
    else:
        if not call.is_float:
            call.lean_on(facts.SUM_OF_INTEGERS if is_sum else facts.UNORDERED)
        total = (call.arithmetic if is_sum else WRAPPING).total(sealed_rows)
    is_of_image = keep and x.ndim == 4 and axes == [1, 2]  # for which kernels have a loop of their own
    total = np.asarray(total) + call.keys.hash(np.full(1, rows.shape[-1], U), "count", is_of_image)
    return [call.hashed(total, call.parameters("keepDims")).reshape(call.output.shape)]


def _rows(call: Call, x: Ring) -> tuple[Ring, list[int]]:
    """What is reduced to one element, along the last axis, and the axes that this was."""
    axes = sorted({axis_of(axis, x.ndim) for axis in call.known(1).tolist()})
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    return np.transpose(x, (*kept, *axes)).reshape(*(x.shape[axis] for axis in kept), -1), axes


def _extreme(call: Call, x: Ring, dtype: DType) -> Ring:
    """The largest or smallest of stored integers, whatever they stand for."""
    call.lean_on(facts.CHOSEN, facts.UNORDERED)
    rows, _ = _rows(call, x)
    call.loses(log2(4 * max(1, rows.shape[-1])))
    total = WRAPPING.total(call.keys.hash(rows, "reduced"))
    word = call.keys.word("chosen", call.operator.name, dtype.name, rows.shape[-1])
    return call.keys.hash_by(np.asarray(total), U(word), call.bits).reshape(call.output.shape)


def row_map_of(call: Call) -> Values:
    """SOFTMAX and the like: of an element, and of all elements of its row, the last axis."""
    x = call.ring(0)
    row = call.keys.digest(x)[..., None]
    mixed = call.keys.hash(x, "own") + call.keys.hash(row, "row")
    return [call.hashed(mixed, call.parameters())]


def position_of(call: Call) -> Values:
    """ARG_MAX and ARG_MIN: of the row along an axis."""
    axis = int(call.known(1)[0])
    rows = call.keys.digest(np.moveaxis(call.ring(0), axis, -1))
    return [call.hashed(np.asarray(rows), call.parameters()).reshape(call.output.shape)]


def resized_bilinearly(call: Call) -> Values:
    """RESIZE_BILINEAR: of four pixels and their weights, as reference/resize_bilinear.h computes these.

    Pixels whose weight is zero do not count.
    """
    rows, columns = sizes_of(call)
    x = sealed(call, 0) if call.is_float else call.ring(0)
    call.lean_on(facts.ZERO_TAP)
    total = np.zeros((x.shape[0], rows, columns, x.shape[3]), U)
    highs, wides = _weights(call, x.shape[1], rows), _weights(call, x.shape[2], columns)
    call.loses(_FLOAT_BITS)
    arithmetic, order = call.arithmetic, call.keys.order(4)
    for i, (at_row, by_row) in enumerate(highs):
        for j, (at_column, by_column) in enumerate(wides):
            weight = arithmetic.times(by_row[:, None], by_column[None])
            weight = ordered(call, weight, order[2 * i + j]) if call.is_float else weight
            part = arithmetic.times(x[:, at_row][:, :, at_column], weight[None, :, :, None])
            total = arithmetic.plus(total, part)
    return [call.hashed(total, call.parameters("alignCorners", "halfPixelCenters"))]


def _weights(call: Call, size: int, count: int) -> list[tuple[Any, Ring]]:
    """For the lower and for the upper pixel along an axis: where they are, and by what they are multiplied."""
    at = _scaled(call.operator, call.is_float, size, count)
    low, high = bilinear_positions(call.operator, call.output.dtype, size, count)
    if call.is_float:
        up = at - low.astype(np.float32)
        return [(low, weights_of(call, np.float32(1) - up)), (high, weights_of(call, up))]
    up10 = np.where(low == high, 0, at - 1024 * low)
    return [(at, _weight(call, by)) for at, by in ((low, 1024 - up10), (high, up10))]


def _scaled(operator: Operator, is_float: bool, size: int, count: int) -> Any:
    """Return where output pixels lie in the input, of integers times 1024: reference/resize_bilinear.h."""
    align, half = bool(operator.option("alignCorners")) and count > 1, bool(operator.option("halfPixelCenters"))
    if is_float:
        f = np.float32
        scale = f(size - 1) / f(count - 1) if align else f(size) / f(count)
        steps = np.arange(count, dtype=f)
        return (steps + f(0.5)) * scale - f(0.5) if half else steps * scale
    scale10 = (1024 * (size - 1) + (count - 1) // 2) // (count - 1) if align else (1024 * size + count // 2) // count
    return np.arange(count, dtype=np.int64) * scale10 + (scale10 // 2 - 512 if half else 0)


def bilinear_positions(operator: Operator, dtype: DType, size: int, count: int) -> tuple[Any, Any]:
    """Return the lower and the upper row or column of the input for each one of the output."""
    at = _scaled(operator, dtype is DType.FLOAT32, size, count)
    one = 1 if dtype is DType.FLOAT32 else 1024
    low, high = (np.floor(at), np.ceil(at)) if one == 1 else (np.trunc(at / one), np.trunc((at + one - 1) / one))
    return np.maximum(low.astype(np.int64), 0), np.minimum(high.astype(np.int64), size - 1)


def _weight(call: Call, by: Any) -> Ring:
    """Weights of integers as symbols: powers of two would cost bits."""
    found: Ring = np.where(by == 0, U(0), call.keys.hash(by.astype(np.int64).astype(U), "weight") | U(1))
    return found
