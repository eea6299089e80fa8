"""What each kind of operator must be for the proof to speak of it: types, ranks, operands, quantization, options.

A proof computes as kernels do only within these contracts. Outside of one an operator is not proved: kernels refuse it,
treat it in another way, or read past an operand. A contract is data: signatures of types, and clauses. The table does
not say all that kernels ask for. What an operator is hashed by, its types, scales and options, can be no other in the
result than in the original, so that clauses are for what values are moved by, added by, or not hashed by.

A signature is a line of types by slot, inputs, ``>``, outputs: ``?`` may be missing, ``*`` once or more often. Capital
letters stand for any of the types that follow the bar, one and the same wherever the letter is.

Sources: tflite-micro commit 90b983c2b3f1, tensorflow/lite/micro/kernels and tensorflow/lite/kernels/internal; LiteRT
2.3.0 where it refuses more (its messages; ``scripts/fuzz proof`` runs both).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...model.ir.check import called_subgraphs, reachable
from ...model.ir.model import DType, Model, Operator, Tensor
from ...model.ir.tensors import integers
from . import moves, sums
from .call import Call
from .ring import Value
from .sums import elementwise, reduction

Evaluated = Callable[[Call], list[Value]]

_TYPES = {"res": DType.RESOURCE, **{each.label[0] + "".join(filter(str.isdigit, each.label)): each for each in DType}}
"""By their names in signatures: ``i8`` for int8, ``b`` for bool."""
_BIASES = (DType.INT32, DType.INT64)
_LIMITS = {DType.INT8: (-128, 127), DType.UINT8: (0, 255), DType.INT16: (-32768, 32767), DType.INT4: (-8, 7)}
"""Of zero points. Other types have none but 0."""


_VERSION = 3
"""Of the schema, that runtimes take."""


@dataclass(frozen=True)
class Clause:
    """A condition on an operator, in words that follow "it must hold that"."""

    text: str
    holds: Callable[[Operator], bool]


@dataclass(frozen=True)
class Contract:
    """``signatures``: one of which its types must fit. ``table``: of its options, where it reads any.

    ``evaluated``: how it is evaluated on random values; None for effects beyond outputs (``run.py``).
    """

    signatures: tuple[str, ...]
    clauses: tuple[Clause, ...] = ()
    table: str | None = None
    evaluated: Evaluated | None = None


# ---------------------------------------------------------------------------------------------------------- clauses


def _shape(operator: Operator, slot: int) -> tuple[int, ...] | None:
    found = operator.operand(slot)
    return None if found is None else found.shape


def ranks(low: int, high: int, *slots: int) -> Clause:
    """Numbers of dimensions of inputs that are there."""

    def holds(operator: Operator) -> bool:
        shapes = [_shape(operator, slot) for slot in slots or (0,)]
        return all(shape is None or low <= len(shape) <= high for shape in shapes)

    return Clause(f"inputs have {low} to {high} dimensions", holds)


def vector(slot: int) -> Clause:
    """An operand that lists sizes or axes; the kernels refuse a scalar or a matrix of them."""

    def holds(operator: Operator) -> bool:
        shape = _shape(operator, slot)
        return shape is None or len(shape) == 1

    return Clause(f"input {slot} has one dimension", holds)


def says_output(slot: int) -> Clause:
    """An operand, where it is known, is the shape of the output."""

    def holds(operator: Operator) -> bool:
        said = integers(operator.inputs[slot])
        return said is None or tuple(said.tolist()) == operator.outputs[0].shape

    return Clause(f"input {slot} is the output's shape", holds)


def one_of(option: str, *allowed: int) -> Clause:
    """An option's values."""
    said = ", ".join(map(str, allowed))
    return Clause(f"{option} is {said}", lambda op: int(op.option(option, allowed[0]) or 0) in allowed)


def at_least(least: int, *options: str) -> Clause:
    """Options that count."""
    return Clause(
        f"{', '.join(options)}: at least {least}",
        lambda op: all(int(op.option(name, least)) >= least for name in options),
    )


def type_of(option: str) -> Clause:
    """An option that says the type of an output: LiteRT goes by it, TFLM by the file."""
    numbers = {DType.INT32: 2, DType.INT64: 4, DType.UINT32: 15, DType.INT16: 7}
    return Clause(
        f"{option} is the output's type",
        lambda op: op.options is None or op.option(option) in (None, numbers.get(op.outputs[0].dtype)),
    )


_RANK_OF_BROADCASTS = 5


def _broadcasts(operator: Operator) -> bool:
    shapes = [tensor.shape for tensor in operator.present_inputs()]
    if len(set(shapes)) == 1:
        return shapes[0] == operator.outputs[0].shape
    return np.broadcast_shapes(*shapes) == operator.outputs[0].shape and max(map(len, shapes)) <= _RANK_OF_BROADCASTS


BROADCAST = Clause(f"shapes are broadcast, of up to {_RANK_OF_BROADCASTS} dimensions", _broadcasts)
SAME_SHAPE = Clause("the output has the input's shape", lambda op: _shape(op, 0) == op.outputs[0].shape)
NO_CORNERS_OF_HALVES = Clause(
    "alignCorners and halfPixelCenters are not both set",
    lambda op: not (op.option("alignCorners") and op.option("halfPixelCenters")),
)


def _reduced(operator: Operator) -> bool:
    axes, shape = integers(operator.inputs[1]), _shape(operator, 0) or ()
    if axes is None:
        return True
    if any(not -len(shape) <= axis < len(shape) for axis in axes.tolist()):
        return False
    gone = {axis % len(shape) for axis in axes.tolist()}
    kept = bool(operator.option("keepDims", False))
    wanted = [1 if axis in gone else size for axis, size in enumerate(shape) if kept or axis not in gone]
    return tuple(wanted) == operator.outputs[0].shape


REDUCED = Clause("axes are those of the input, and the output has its other ones, or 1 with keepDims", _reduced)


def axis_within(more: int = 0) -> Clause:
    """The option ``axis`` is one of the first input, or of it and ``more`` dimensions."""

    def holds(operator: Operator) -> bool:
        rank = len(_shape(operator, 0) or ()) + more
        return -rank <= int(operator.option("axis", 0)) < max(rank, 1)

    return Clause("axis is an axis", holds)


def _cut(operator: Operator) -> bool:
    """Return whether STRIDED_SLICE is one that TFLM and LiteRT take alike, as Python does."""
    rank = len(_shape(operator, 0) or ())
    if any(tensor is None or tensor.shape != (rank,) for tensor in operator.inputs[1:4]):
        return False
    strides = integers(operator.inputs[3])
    shrunk, begins = (int(operator.option(name, 0)) for name in ("shrinkAxisMask", "beginMask"))
    if strides is None:
        return not shrunk
    return not shrunk & begins and all(stride > 0 or not shrunk >> at & 1 for at, stride in enumerate(strides.tolist()))


CUT = Clause("an axis that is left out has its begin in the operand, and a stride from 1 on", _cut)


def size_of(slot: int, of: int, axis: int) -> Clause:
    """An operand has as many elements as a dimension of another one."""

    def holds(operator: Operator) -> bool:
        one, other = _shape(operator, slot), _shape(operator, of)
        return one is None or other is None or (len(other) > axis and int(np.prod(one)) == other[axis])

    return Clause(f"input {slot} has an element for each of dimension {axis} of input {of}", holds)


PAIRS = Clause(
    "input 1 has two numbers for each dimension of input 0",
    lambda op: _shape(op, 1) in (None, (len(_shape(op, 0) or ()), 2)),
)
NO_EMPTY_BIAS = Clause(
    "the bias is there, or is not among the inputs", lambda op: len(op.inputs) < 3 or op.inputs[2] is not None
)


def _is_int(tensor: Tensor) -> bool:
    return tensor.dtype in (DType.INT8, DType.UINT8, DType.INT16, DType.INT4, DType.INT2)


def scaled(data: int, weights: int, axis: int) -> Clause:
    """Quantization of a sum of products: one scale of data and output, one or one for each channel of weights."""

    def holds(operator: Operator) -> bool:
        x, w, y = operator.inputs[data], operator.inputs[weights], operator.outputs[0]
        if x is None or w is None:
            return False
        if not _is_int(w):
            return True
        found = w.quantization
        if found is None or found.scale.size not in (1, w.shape[axis] if len(w.shape) > axis else 0):
            return False
        if found.scale.size > 1 and found.axis != axis:
            return False
        is_symmetric = found.scale.size > 1 or not _is_int(x)
        return not (is_symmetric and _points(w) - {0}) and all(_scales(each) == 1 for each in (x, y) if _is_int(each))

    return Clause(
        f"data and output have one scale, weights one or one along {axis}; zero points of several scales, and of "
        "weights for floats, are 0",
        holds,
    )


def _points_of_weights(operator: Operator) -> bool:
    weights = operator.inputs[1]
    is_asymmetric = weights is not None and weights.dtype in _ASYMMETRIC.get(operator.name, ())
    return weights is None or is_asymmetric or _points(weights) <= {0}


_ASYMMETRIC = {"CONV_2D": (DType.UINT8,), "FULLY_CONNECTED": (DType.INT8, DType.UINT8)}
"""Weights that LiteRT takes with any zero point (2.3.0, kernels/conv.cc and fully_connected.cc)."""
SYMMETRIC_WEIGHTS = Clause("zero points of weights are 0, unless LiteRT takes others", _points_of_weights)


def _scaled_for_floats(operator: Operator) -> bool:
    x, weights = operator.inputs[:2]
    if x is None or weights is None or _is_int(x) or not _is_int(weights):
        return True
    return weights.dtype is not DType.INT4 and weights.shape[3:] == (_scales(weights),)


SCALED_FOR_FLOATS = Clause(
    "integer weights for floats are no int4, and have a scale for each channel", _scaled_for_floats
)


def _multiplied(operator: Operator) -> bool:
    x, weights = _shape(operator, 0), _shape(operator, 1)
    return x is None or weights is None or int(operator.option("depthMultiplier", 0)) * x[3] == weights[3]


MULTIPLIED = Clause("depthMultiplier times the input's channels is the output's", _multiplied)
"""TFLM goes by the option, and writes as many channels; LiteRT goes by the shapes."""


def _scales(tensor: Tensor) -> int:
    return 0 if tensor.quantization is None else int(tensor.quantization.scale.size)


HAS_SCALES = Clause(
    "integers have a scale",
    lambda op: all(_scales(each) for each in (*op.present_inputs(), *op.outputs) if _is_int(each)),
)


def _points(tensor: Tensor) -> set[int]:
    return set() if tensor.quantization is None else set(map(int, tensor.quantization.zero_point))


def symmetric(*slots: int) -> Clause:
    """Kernels of 16 bits take zero points to be 0."""

    def holds(operator: Operator) -> bool:
        tensors = [*(operator.inputs[slot] for slot in slots if slot < len(operator.inputs)), *operator.outputs]
        return all(_points(each) <= {0} for each in tensors if each is not None and each.dtype is DType.INT16)

    return Clause("zero points of 16 bits are 0", holds)


def _bias_scaled(operator: Operator) -> bool:
    """Return whether the scale of a dense layer's bias is the product of the others: both runtimes refuse 2 % more."""
    x, w, y = operator.inputs[0], operator.inputs[1], operator.outputs[0]
    bias = operator.operand(2)
    if bias is None or x is None or w is None or not (_is_int(x) and _scales(bias) == _scales(w) == 1):
        return True
    found = [each.quantization for each in (x, w, bias, y)]
    of_data, of_weights, own, result = (float(each.scale[0]) for each in found if each is not None)
    return abs(of_data * of_weights - own) / result <= 0.02


BIAS_SCALED = Clause("the bias has the scale of the products", _bias_scaled)


def _dense_shape(operator: Operator) -> bool:
    x, w, y = _shape(operator, 0), _shape(operator, 1), operator.outputs[0].shape
    if x is None or w is None or len(w) != 2 or not w[1] or int(np.prod(x)) % w[1]:
        return True  # which the sum itself refuses
    if operator.option("keepNumDims", False):
        return (*x[:-1], w[0]) == y
    return (int(np.prod(x)) // w[1], w[0]) == y


DENSE_SHAPE = Clause("the output has the rows of the input, in its shape with keepNumDims", _dense_shape)


def like_output(*slots: int) -> Clause:
    """Kernels refuse parts of another quantization, or copy them as they are."""
    return Clause(
        f"input {', '.join(map(str, slots))} is quantized as the output",
        lambda op: all(
            _quantization(op.inputs[slot]) == _quantization(op.outputs[0]) for slot in slots if slot < len(op.inputs)
        ),
    )


LIKE_OUTPUT = Clause(
    "inputs are quantized as the output",
    lambda op: all(_quantization(each) == _quantization(op.outputs[0]) for each in op.inputs),
)
LIKE_INPUT = Clause(
    "outputs are quantized as the input",
    lambda op: all(_quantization(output) == _quantization(op.inputs[0]) for output in op.outputs),
)


def _quantization(tensor: Tensor | None) -> object:
    found = None if tensor is None or not _is_int(tensor) else tensor.quantization
    return None if found is None else (found.scale.tolist(), found.zero_point.tolist())


# ------------------------------------------------------------------------------------------------------------ table


def _rows(names: str, evaluated: Evaluated, *terms: str | Clause) -> dict[str, Contract]:
    """``names``: of kinds, and behind a colon of their table of options. ``terms``: signatures and clauses."""
    kinds, _, table = names.partition(": ")
    signatures = tuple(each for each in terms if isinstance(each, str))
    clauses = tuple(each for each in terms if isinstance(each, Clause))
    return dict.fromkeys(kinds.split(), Contract(signatures, clauses, table or None, evaluated))


_ANY = "f32 f16 f64 i4 i8 i16 i32 i64 u8 u16 u32 b"
_DATA = "f32 i8 i16 i32 i64 u8 b"
_REAL = "f32 i8 i16 u8"
_INDEX = "i32 i64"
_POSITIONS = f"T I > J | T: f32 i8 u8 i32 b | I: {_INDEX} | J: {_INDEX}"
_BY_INDEX = f"T I > T | T: {_DATA} | I: {_INDEX}"
_SUMS = ("f32 f32 f32? > f32", "f32 W f32? > f32 | W: i8 i4 u8", "u8 u8 i32? > u8", "i8 W i32? > i8 | W: i8 i4 i2")
_SUMS_16 = ("i16 i8 B? > i16 | B: i32 i64",)
_NOT_FUSED = one_of("fusedActivationFunction", 0)
_OF_BIAS = one_of("quantizedBiasType", 0, 2, 4)
_WINDOW = (ranks(4, 4, 0, 1), size_of(2, 1, 0), scaled(0, 1, 0), symmetric(0), _OF_BIAS)
_MOVED = f"| T: {_ANY}"
_NUMBERED = range(18)
"""Types by their number in the schema: of another one runtimes refuse the file."""
_CAST = (SAME_SHAPE, *(one_of(option, *_NUMBERED) for option in ("inDataType", "outDataType")))
_BLOCKS = (ranks(4, 4), at_least(1, "blockSize"))
_BATCHES = ("T i32 i32 > T | T: f32 i8 i16 i32 i64 u8", ranks(3, 4), like_output(0))
_MIRRORED = (ranks(1, 5), PAIRS, one_of("mode", 0, 1), like_output(0))
_POOL = (ranks(4, 4), at_least(1, "filterHeight", "filterWidth", "strideH", "strideW"))
_RESIZED = ("T i32 > T | T: f32 i8 i16 u8", ranks(4, 4))
_BY_CHANNEL = (NO_EMPTY_BIAS, MULTIPLIED, SCALED_FOR_FLOATS)
_DEPTHWISE = (ranks(4, 4, 0, 1), size_of(2, 1, 3), scaled(0, 1, 3), symmetric(0), *_BY_CHANNEL)
_DENSE_16 = "i16 W B? > i16 | W: i8 i4 | B: i32 i64"
_DENSE = (ranks(2, 2, 1), size_of(2, 1, 0), scaled(0, 1, 0), symmetric(0), BIAS_SCALED, DENSE_SHAPE)
_AS_IT_LIES = (SYMMETRIC_WEIGHTS, one_of("weightsFormat", 0))
_CUT = (ranks(1, 5), CUT, *(one_of(option, 0) for option in ("ellipsisMask", "newAxisMask", "offset")))
_OF_TURNED = ("f32 | W: f32 | B: f32", "i8 | W: i8 | B: i32", "u8 | W: u8 | B: i32", "i16 | W: i8 | B: i32 i64")
_SUMS_TURNED = [f"i32 W T B? > T | T: {types}" for types in _OF_TURNED]
_TURNED = (ranks(4, 4, 1, 2), size_of(3, 1, 0), scaled(2, 1, 0), symmetric(2), _OF_BIAS)
CONTRACTS: Mapping[str, Contract] = {
    **_rows("ABS", elementwise, "T > T | T: f32 i8 i16 i32", SAME_SHAPE),
    **_rows("CEIL COS FLOOR SIN ROUND SQUARE", elementwise, "f32 > f32", SAME_SHAPE),
    **_rows("ELU GELU", elementwise, f"T > T | T: {_REAL}", SAME_SHAPE),
    **_rows("EXP LOG RSQRT SQRT SIGN", elementwise, "T > T | T: f32 i8 i16 i32 f64", SAME_SHAPE),
    **_rows("HARD_SWISH LOGISTIC RELU_0_TO_1 TANH", elementwise, f"T > T | T: {_REAL}", SAME_SHAPE),
    **_rows("RELU RELU6 RELU_N1_TO_1", sums.clamped, f"T > T | T: {_REAL}", SAME_SHAPE),
    **_rows("LEAKY_RELU: LeakyReluOptions", elementwise, f"T > T | T: {_REAL}", SAME_SHAPE),
    **_rows("LOGICAL_NOT", elementwise, "b > b", SAME_SHAPE),
    **_rows("NEG", elementwise, "T > T | T: f32 i8 i16 i32 i64", SAME_SHAPE),
    **_rows("ADD_N", elementwise, "T* > T | T: f32 i8 i32", SAME_SHAPE),
    **_rows("ATAN2", elementwise, "T T > T | T: f32 f64", SAME_SHAPE),
    **_rows("DIV: DivOptions", elementwise, "T T > T | T: f32 i8 i32 u8", BROADCAST),
    **_rows("EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL", elementwise, f"T T > b | T: {_DATA}", BROADCAST),
    **_rows("FLOOR_DIV FLOOR_MOD", elementwise, "T T > T | T: f32 i8 i16 i32 i64", BROADCAST),
    **_rows("LOGICAL_AND LOGICAL_OR", elementwise, "b b > b", BROADCAST),
    **_rows("MAXIMUM MINIMUM", sums.limited, "T T > T | T: f32 i8 i16 i32 i64 u8", BROADCAST),
    **_rows("POW", elementwise, "T T > T | T: f32 i32", BROADCAST),
    **_rows("PRELU", elementwise, "T T > T | T: f32 i8 u8", BROADCAST),
    **_rows("SQUARED_DIFFERENCE", elementwise, "T T > T | T: f32 i8 i32", BROADCAST),
    **_rows("ADD: AddOptions", sums.sum_of, "T T > T | T: f32 i8 i16 i32 i64 u8", BROADCAST),
    **_rows("SUB: SubOptions", sums.sum_of, "T T > T | T: f32 i8 i16 i32 i64 u8", BROADCAST),
    **_rows("MUL: MulOptions", sums.product_of, "T T > T | T: f32 i8 i16 i32 i64 u8", BROADCAST),
    **_rows("AVERAGE_POOL_2D MAX_POOL_2D: Pool2DOptions", sums.pool, f"T > T | T: {_REAL}", *_POOL),
    **_rows("L2_POOL_2D: Pool2DOptions", sums.pool, "f32 > f32", ranks(4, 4)),
    **_rows("MEAN SUM: ReducerOptions", reduction, f"T i32 > T | T: {_REAL} i32 i64", REDUCED),
    **_rows("REDUCE_MAX REDUCE_MIN REDUCE_PROD: ReducerOptions", reduction, f"T i32 > T | T: {_REAL} i32 i64", REDUCED),
    **_rows("REDUCE_ALL REDUCE_ANY: ReducerOptions", reduction, "b i32 > b", REDUCED),
    **_rows("SOFTMAX: SoftmaxOptions", sums.row_map_of, f"T > T | T: {_REAL}", "i8 > i16", ranks(1, 4), SAME_SHAPE),
    **_rows("LOG_SOFTMAX", sums.row_map_of, "T > T | T: f32 i8 u8", ranks(1, 4), SAME_SHAPE),
    **_rows("L2_NORMALIZATION: L2NormOptions", sums.row_map_of, "T > T | T: f32 i8 u8", ranks(1, 4), SAME_SHAPE),
    **_rows("ARG_MAX: ArgMaxOptions", sums.position_of, _POSITIONS, type_of("outputType"), REDUCED),
    **_rows("ARG_MIN: ArgMinOptions", sums.position_of, _POSITIONS, type_of("outputType"), REDUCED),
    **_rows("RESHAPE: ReshapeOptions", moves.reshaped, f"T > T {_MOVED}", f"T i32 > T {_MOVED}"),
    **_rows("SQUEEZE: SqueezeOptions", moves.reshaped, f"T > T {_MOVED}", ranks(1, 8)),
    **_rows("EXPAND_DIMS", moves.reshaped, f"T I > T {_MOVED} | I: {_INDEX}"),
    **_rows("SPLIT: SplitOptions", moves.split, f"i32 T > T* | T: {_DATA}"),
    **_rows("SPLIT_V: SplitVOptions", moves.split, f"T I i32 > T* | T: {_DATA} | I: {_INDEX}"),
    **_rows("PAD", moves.padded, _BY_INDEX, ranks(1, 5), PAIRS, like_output(0)),
    **_rows("PADV2", moves.padded, f"T I T > T | T: {_DATA} | I: {_INDEX}", ranks(1, 5), PAIRS, like_output(0, 2)),
    **_rows("SELECT", moves.selected, f"b T T > T | T: {_DATA}", like_output(1, 2)),
    **_rows("SELECT_V2", moves.selected, f"b T T > T | T: {_DATA}", BROADCAST, like_output(1, 2)),
    **_rows("CAST: CastOptions", moves.converted, f"S > T | S: {_ANY} | T: {_ANY}", *_CAST),
    **_rows("DEQUANTIZE", moves.converted, "T > f32 | T: i4 i8 i16 u8 f16", SAME_SHAPE, HAS_SCALES),
    **_rows("QUANTIZE", moves.converted, "S > T | S: f32 i8 i16 i32 u8 | T: i8 i16 i32 u8", SAME_SHAPE, HAS_SCALES),
    **_rows("SHAPE: ShapeOptions", moves.shape_of, f"T > J | T: {_ANY} | J: {_INDEX}", type_of("outType")),
    **_rows("RANK", moves.shape_of, f"T > i32 | T: {_ANY}"),
    **_rows("BATCH_MATMUL: BatchMatMulOptions", sums.matrix_product, "T T > T | T: f32 i8 i16 i32", "f32 i8 > f32"),
    **_rows("BATCH_TO_SPACE_ND", moves.batch_to_space, *_BATCHES),
    **_rows("SPACE_TO_BATCH_ND", moves.space_to_batch, *_BATCHES),
    **_rows("BROADCAST_ARGS", moves.broadcast_shape, f"I I > I | I: {_INDEX}"),
    **_rows("BROADCAST_TO", moves.broadcast, _BY_INDEX, ranks(0, 5), vector(1), says_output(1)),
    **_rows("CONCATENATION: ConcatenationOptions", moves.joined, f"T* > T | T: {_DATA}", axis_within(), _NOT_FUSED),
    **_rows("CONV_2D: Conv2DOptions", sums.convolution, *_SUMS, *_SUMS_16, *_WINDOW, SYMMETRIC_WEIGHTS, NO_EMPTY_BIAS),
    **_rows("CUMSUM: CumsumOptions", moves.whole, "T i32 > T | T: f32 i8 i32 i64", SAME_SHAPE),
    **_rows("DEPTHWISE_CONV_2D: DepthwiseConv2DOptions", sums.depthwise, *_SUMS, *_SUMS_16, *_DEPTHWISE),
    **_rows("DEPTH_TO_SPACE: DepthToSpaceOptions", moves.depth_to_space, "T > T | T: f32 i8 i32 i64 u8", *_BLOCKS),
    **_rows("SPACE_TO_DEPTH: SpaceToDepthOptions", moves.space_to_depth, "T > T | T: f32 i8 i32 i64 u8", *_BLOCKS),
    **_rows("DYNAMIC_UPDATE_SLICE", moves.updated, f"T T I > T | T: {_DATA} | I: {_INDEX}", SAME_SHAPE),
    **_rows("EMBEDDING_LOOKUP", moves.whole, "i32 T > U | T: f32 i8 i4 u8 | U: f32 i8 u8"),
    **_rows("FILL", moves.filled, f"I T > T | T: {_DATA} | I: {_INDEX}", says_output(0), vector(0), ranks(0, 0, 1)),
    **_rows("FULLY_CONNECTED: FullyConnectedOptions", sums.dense, *_SUMS, _DENSE_16, *_DENSE, *_AS_IT_LIES, _OF_BIAS),
    **_rows("GATHER: GatherOptions", moves.gathered, f"T I > T | T: {_DATA} i4 | I: i16 i32 i64", axis_within()),
    **_rows("GATHER_ND", moves.whole, f"T I > T | T: {_DATA} | I: i16 i32 i64"),
    **_rows("MIRROR_PAD: MirrorPadOptions", moves.mirrored, _BY_INDEX, *_MIRRORED),
    **_rows("PACK: PackOptions", moves.stacked, f"T* > T | T: {_DATA}", axis_within(1), LIKE_OUTPUT),
    **_rows("UNPACK: UnpackOptions", moves.unstacked, f"T > T* | T: {_DATA}", ranks(1, 8), axis_within(), LIKE_INPUT),
    **_rows("RANGE", moves.whole, "T T T > T | T: f32 i32 i64"),
    **_rows("RESIZE_BILINEAR: ResizeBilinearOptions", sums.resized_bilinearly, *_RESIZED, NO_CORNERS_OF_HALVES),
    **_rows("RESIZE_NEAREST_NEIGHBOR: ResizeNearestNeighborOptions", moves.resized_by_nearest, *_RESIZED),
    **_rows("REVERSE_V2", moves.reversed_along, f"T i32 > T | T: {_DATA}", ranks(1, 8), vector(1), SAME_SHAPE),
    **_rows("SLICE", moves.cut, f"T I I > T | T: {_DATA} u32 | I: {_INDEX}", ranks(1, 5), vector(1), vector(2)),
    **_rows("STRIDED_SLICE: StridedSliceOptions", moves.strided_cut, f"T i32 i32 i32 > T | T: {_DATA} u32", *_CUT),
    **_rows("TILE", moves.tiled, _BY_INDEX, ranks(1, 8)),
    **_rows("TRANSPOSE", moves.transposed, f"T i32 > T | T: {_DATA} i4", ranks(0, 6)),
    **_rows("TRANSPOSE_CONV: TransposeConvOptions", sums.transposed_convolution, *_SUMS_TURNED, *_TURNED),
    **_rows("ZEROS_LIKE", moves.whole, f"T > T | T: {_DATA}", SAME_SHAPE),
    "IF": Contract((), (), "IfOptions"),
    "WHILE": Contract((), (), "WhileOptions"),
    "CALL_ONCE": Contract((">",), (), "CallOnceOptions"),
    "VAR_HANDLE": Contract(("> res",), (), "VarHandleOptions"),
    "READ_VARIABLE": Contract((f"res > T {_MOVED}",)),
    "ASSIGN_VARIABLE": Contract((f"res T > {_MOVED}",)),
}
"""By kind: how it is evaluated, and its contract. Those that ``kinds.py`` takes as functions of everything have none,
since all of them is hashed."""


# ------------------------------------------------------------------------------------------------------------ check


_HAVE_INTERMEDIATES = frozenset({"UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF", "CUSTOM"})


def broken_clause(operator: Operator) -> str | None:
    """Return the first clause that an operator does not keep, in words; None within its contract."""
    contract = CONTRACTS.get(operator.name, Contract(()))
    if contract.table is not None and operator.options is not None and operator.options.kind != contract.table:
        return f"its options are a table {contract.table}, not {operator.options.kind}"
    if operator.name != "CUSTOM" and operator.custom_options is not None and operator.custom_options.size:
        return "only custom operators have custom options"
    if operator.intermediates and operator.name not in _HAVE_INTERMEDIATES:
        return "only recurrent layers have intermediate tensors"
    if contract.signatures and not any(_fits(operator, each) for each in contract.signatures):
        return f"its types are one of {'; '.join(contract.signatures)}"
    for tensor in (*operator.present_inputs(), *operator.outputs):
        said = _sound(tensor)
        if said is not None:
            return said
    for clause in contract.clauses:
        try:
            holds = clause.holds(operator)
        except (ValueError, IndexError):  # numpy: shapes that do not fit
            holds = False
        if not holds:
            return clause.text
    return None


@dataclass(frozen=True)
class _Slot:
    """``letter``: of the types that are the same in all of its slots; None for a slot of its own."""

    types: frozenset[DType]
    letter: str | None
    may_miss: bool
    repeats: bool


@cache
def _parsed(signature: str) -> tuple[tuple[_Slot, ...], tuple[_Slot, ...]]:
    line, *letters = signature.split("|")
    named = {letter.strip(): types.split() for letter, _, types in (each.partition(":") for each in letters)}

    def slots(words: str) -> tuple[_Slot, ...]:
        found = []
        for word in words.split():
            name = word.rstrip("?*")
            types = frozenset(_TYPES[each] for each in named.get(name, [name]))
            found.append(_Slot(types, name if name in named else None, word[-1] == "?", word[-1] == "*"))
        return tuple(found)

    inputs, _, outputs = line.partition(">")
    return slots(inputs), slots(outputs)


def _fits(operator: Operator, signature: str) -> bool:
    """Return whether an operator's types fit a signature."""
    inputs, outputs = _parsed(signature)
    bound: dict[str, DType] = {}
    return _fit(operator.inputs, inputs, bound) and _fit(operator.outputs, outputs, bound)


def _fit(tensors: Sequence[Tensor | None], slots: Sequence[_Slot], bound: dict[str, DType]) -> bool:
    if slots and slots[-1].repeats:
        slots = [*slots, *[slots[-1]] * (len(tensors) - len(slots))]
    absent = slots[len(tensors) :]
    if len(tensors) > len(slots) or not all(slot.may_miss for slot in absent):
        return False
    return all(_fits_slot(tensor, slot, bound) for tensor, slot in zip(tensors, slots, strict=False))


def _fits_slot(tensor: Tensor | None, slot: _Slot, bound: dict[str, DType]) -> bool:
    if tensor is None:
        return slot.may_miss
    if tensor.dtype not in slot.types:
        return False
    return slot.letter is None or bound.setdefault(slot.letter, tensor.dtype) is tensor.dtype


def _sound(tensor: Tensor) -> str | None:
    """Return what is wrong with a tensor and its quantization; None where kernels take it as the file says it."""
    if tensor.extras.get("externalBuffer", 0):
        return f"the values of '{tensor.name}' are in the file"
    held = tensor.buffer.data if tensor.is_constant and tensor.extras.get("sparsity") is None else None
    if held is not None and held.size != tensor.file_bytes:
        return f"'{tensor.name}' has as many bytes as its shape says"
    has_other_role = tensor.producer is not None or tensor.dtype is DType.RESOURCE or not tensor.buffer.is_empty
    if tensor.is_variable and has_other_role:
        return f"the variable '{tensor.name}' is no constant, no output of an operator, and no handle"
    found = tensor.quantization
    if found is None:
        return None
    if found.extras.get("details") is not None or found.extras.get("detailsType", 0):
        return f"'{tensor.name}' has one scale or one for each channel"
    is_bias = tensor.dtype in _BIASES  # kernels take no more of it than the values; LiteRT: ``newly_refused``
    if found.scale.size and not is_bias and not 0 <= found.axis < max(1, len(tensor.shape)):
        return f"scales of '{tensor.name}' are along one of its dimensions"
    if found.scale.size and not (found.scale.min() > 0 and found.scale.max() < np.inf):  # also where one is no number
        return f"scales of '{tensor.name}' are finite and positive"
    if found.scale.size and not is_bias and found.zero_point.size != found.scale.size:
        return f"'{tensor.name}' has as many zero points as scales"
    low, high = _LIMITS.get(tensor.dtype, (0, 0))
    if not all(low <= point <= high for point in found.zero_point.tolist()):
        return f"zero points of '{tensor.name}' are from {low} to {high}"
    return None


def newly_refused(original: Model, result: Model) -> str | None:
    """Return why LiteRT refuses a result for what no kernel reads of a bias, where it takes the original; else None.

    TFLM runs both: older converters wrote the scales of a bias along an axis that it does not have.
    """
    return None if _odd_bias(original) else _odd_bias(result)


def _odd_bias(model: Model) -> str | None:
    for tensor in (each for each in model.all_tensors if each.dtype in _BIASES):
        found = tensor.quantization
        if found is None or not found.scale.size:
            continue
        if not 0 <= found.axis < max(1, len(tensor.shape)) or found.zero_point.size != found.scale.size:
            return f"scales of '{tensor.name}' are along one of its dimensions, with a zero point for each"
    return None


def broken_model(model: Model) -> str | None:
    """Return why nothing can be said of a model, whatever its operators are: its version, or memory that is shared."""
    if model.version != _VERSION:
        return f"its version is {model.version}, not {_VERSION}"
    if not all(signature.key for signature in model.signatures or ()):
        return "a signature has no name"  # LiteRT refuses the file
    starts = [0, *(model.graphs.index(signature.graph) for signature in model.signatures or ())]
    run = set[int]().union(*(reachable(model, start) for start in starts))
    if len(run) < len(model.graphs):
        return f"{len(model.graphs) - len(run)} subgraphs are run by nobody"  # TFLM prepares them all the same
    once = (each for each in model.all_operators if each.name == "CALL_ONCE")
    called = [model.graphs[index] for operator in once for index in called_subgraphs(operator)]
    if any(graph.inputs or graph.outputs for graph in called):
        return "a subgraph that is called once takes or gives something"  # LiteRT refuses the file
    held: dict[int, set[str]] = {}
    for graph in model.graphs:
        inputs = set(graph.inputs)
        for tensor in graph.tensors:
            role = "input" if tensor in inputs else "variable" if tensor.is_variable else "constant"
            if not tensor.buffer.is_empty:
                held.setdefault(id(tensor.buffer), set()).add(role)
                if role == "input" or (role == "variable" and len(held[id(tensor.buffer)]) > 1):
                    return f"the {role} '{tensor.name}' has the bytes of a constant"
                if role == "constant" and "variable" in held[id(tensor.buffer)]:
                    return f"the constant '{tensor.name}' has the bytes of a variable"
    return None
