"""The table of operator kinds: how each is cut, what it may overwrite, and which operators of it TFLM takes.

Code that cuts operators or lays them along another axis asks the table, and knows no names. To add a kind:

1. Its rows, in ``rows.py``: ``(Operator) -> RowMap | str``, the string being the reason for the report. Where row r
   reads row r that is ``elementwise_rows``, or ``_same`` with the slots that are cut. A window (``is_window``) has
   TFLite's option ``padding``, which the writer sets to VALID.
2. The entry in ``OPERATORS``: an ``OperatorKind`` with these rows; elementwise kinds begin with ``_UNARY`` or
   ``_BINARY``. A kind without rows runs whole; one that TFLM lacks may be there already, with what rewrites ask. Where
   they apply: ``resized`` (an operand or an option repeats the number of rows), ``beyond`` (the operator pads by
   itself), ``overwrites``, ``tflm`` (the types and operands that TFLM's kernel takes). Optional: ``by_phase`` and
   ``along_h``; without them sequences with this operator are not cut that way.
3. What its kernels take from the arena, in ``kernels/requests.py``: a kind without a row counts as one that TFLM lacks,
   and models with it are refused. The sizes are those of the kernel's OpData; ``tests/kernels/test_requests.py``
   compares them with what the wheel allocates, and counts the kinds. If TFLM lacked it before, its advice in
   ``_LAYERS`` of ``kernels/support.py`` goes.
4. Its row in docs/reference.md: ``python -m scripts.makers.reference`` takes it from the docstring of its rows.
5. If ``overwrites`` is set, the order in which its kernel reads and writes, in ``evidence/proof/orders.py``: the proof
   refuses a plan without it. What it computes is in ``contracts.py`` and ``kinds.py`` there; a kind that is not there
   is equal to the same operator on equal inputs alone, and cannot be cut.
6. Tests: a reason for each refusal in ``REFUSED`` and the rows against an interpreter, its name among those drawn, in
   ``tests/operators/test_receptive_field.py``; in ``tests/cascade/networks.py`` a method, its entry in ``make`` and a
   place in ``OPERATORS`` or ``KEEPING_ROWS``: ``pytest -m "" tests/cascade/test_lower.py`` compares its stripes. A
   maker in ``tests/kernels/one_operator.py`` for its types; if ``overwrites`` is set, a case in ``INT8S`` or
   ``FLOATS`` of ``tests/kernels/test_relations_in_place.py``.

MACs are in ``analysis/macs.py``. Instructions are in ``memory/work.py``: ``prices.element`` for each output element,
unless the kind has a row there; one with a curve or a table for integers belongs in ``_CURVES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ..model.ir.editor import Editor
from ..model.ir.model import DType, Operator
from . import overrides, rows
from .overrides import Overrides, PaddingsOperand, ShapeOperand
from .rows import RowMap, is_image, is_stack

Beyond = Literal["zero point", "own value", "not counted"]
"""The values beyond the edges of an operator's input: the zero point, a value of its own, or none."""
Overwrites = Literal["first input", "any input"]


@dataclass(frozen=True)
class ByPhase:
    """Tells whether an operator can run for each phase of a sequence by itself, and with which overrides."""

    can: Callable[[Operator, int], bool]
    overrides_for: Callable[[Editor, Operator, int], Overrides] = overrides.nothing_for_phase


@dataclass(frozen=True)
class AlongH:
    """Tells whether an operator computes the same from these sequences laid along H, and with which overrides.

    ``filters``: the slot of filters that are laid along H as well; ``as_it_lies``: of an operand that is not.
    ``is_worth_it``: whether sequences are laid along H for its sake.
    """

    can: Callable[[Operator, overrides.Sequences], bool]
    overrides_for: Callable[[Editor, Operator], Overrides] = overrides.nothing_along_h
    filters: int | None = None
    as_it_lies: int | None = None
    is_worth_it: bool = False


@dataclass(frozen=True)
class Tflm:
    """The operators of a kind that TFLM's kernel takes.

    ``types``: of the first ``activation``, which is the input at this position; None where the kernel does not look.
    ``weights``: the position of an input that a float activation needs in float as well; ``of_weights``: the types that
    it may have, by that of the activation. ``constants``: inputs that Prepare takes as constants alone ("Non-constant
    tensor is not supported"). ``sizes``: inputs whose values make the shape of the output. ``rank``: the least and the
    most dimensions of the activation, and of which types. ``outputs``: types of the first output, by that of the
    activation. ``one_scale``: the output has the scale and the zero point of the input. Source: the kernels' Prepare
    and Eval in tflite-micro, compared with the wheel by ``scripts/fuzz runtimes``.
    """

    types: frozenset[DType] | None = None
    activation: int = 0
    weights: int | None = None
    of_weights: Mapping[DType, frozenset[DType]] = field(default_factory=dict)
    constants: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    rank: tuple[int, int, frozenset[DType]] = (0, 0, frozenset())
    outputs: Mapping[DType, frozenset[DType]] = field(default_factory=dict)
    one_scale: bool = False

    def takes(self, dtype: DType) -> bool:
        """Tell whether the activation may be of this type."""
        return self.types is None or dtype in self.types


def _not_by_rows(operator: Operator) -> str:
    return f"{operator.name} is not computed row by row"


@dataclass(frozen=True)
class OperatorKind:
    """All that is known of one kind of operator, but for what kernel libraries take from the arena.

    ``rows``: how one is run for some of its rows, or why it is not. ``resized``: the operand that must get another
    number of rows. ``beyond``: what it sees where it pads by itself. ``is_elementwise``: an output pixel depends on the
    inputs' pixels at the same place; in some kinds on all their channels. ``is_by_channel``: an output element depends
    on the elements at its place alone, by parameters of whole tensors. ``overwrites``: the inputs whose elements the
    kernel reads only at the index that it writes, so that the output may lie on one of them. ``drops_channels``: the
    output has none. ``flash``: bytes of code and constants (``kernels/code_size.py``); None: not measured.
    """

    rows: Callable[[Operator], RowMap | str] = _not_by_rows
    resized: ShapeOperand | PaddingsOperand | None = None
    beyond: Beyond | None = None
    is_elementwise: bool = False
    is_by_channel: bool = False
    overwrites: Overwrites | None = None
    drops_channels: bool = False
    by_phase: ByPhase | None = None
    along_h: AlongH | None = None
    tflm: Tflm = Tflm()
    flash: int | None = None

    @property
    def is_pad(self) -> bool:
        """Tell whether all that it does is to put something around its input."""
        return isinstance(self.resized, PaddingsOperand)


F32, I8, I16, I32, I64, U8, BOOL, I4 = (
    *(DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8),
    *(DType.BOOL, DType.INT4),
)
_FLOAT = frozenset({F32})
_TO_8 = _FLOAT | {I8}
_TO_16 = _TO_8 | {I16}
_TO_32 = _TO_16 | {I32}
_TO_64 = _TO_32 | {I64}
_BYTES: Mapping[DType, frozenset[DType]] = {F32: _FLOAT, I8: frozenset({I8}), I16: frozenset({I8})}
"""Types of weights by that of the activation."""
_NIBBLES = {**_BYTES, I8: frozenset({I8, I4})}
_CAST = _TO_32 | {BOOL, DType.UINT32}
_QUANTIZED: Mapping[DType, frozenset[DType]] = {
    F32: frozenset({I8, I16}),
    I8: frozenset({I8, I16, I32, U8}),
    U8: frozenset({I8}),
    I16: frozenset({I8, I16, I32}),
    I32: frozenset({I8, I16}),
}
"""What QUANTIZE makes of a type."""

_PIXELS = OperatorKind(rows.elementwise_rows, is_elementwise=True, along_h=AlongH(overrides.has_sequences_alone))
_ANY_PHASE = ByPhase(overrides.is_same_in_every_phase)
_UNARY = replace(_PIXELS, is_by_channel=True, overwrites="first input", by_phase=_ANY_PHASE)
_BINARY = replace(_UNARY, overwrites="any input")
_CONVOLUTION = OperatorKind(
    rows.convolution_rows,
    beyond="zero point",
    along_h=AlongH(overrides.has_filters_of_one_row, overrides.swapped_sides, filters=1, is_worth_it=True),
)
_POOL = OperatorKind(
    rows.pool_rows, beyond="not counted", along_h=AlongH(overrides.pools_one_row, overrides.swapped_sides)
)
_PAD = OperatorKind(rows.pad_rows, PaddingsOperand(), along_h=AlongH(overrides.pads_along, overrides.paddings_along_h))
_REDUCTION = OperatorKind(rows.reduction_rows, along_h=AlongH(overrides.reduces_channels, overrides.axis_of_channels))
_ARGUMENT = OperatorKind(rows.argument_rows, drops_channels=True)
_SIZE = ShapeOperand(1, 1, 3)

OPERATORS: Mapping[str, OperatorKind] = {
    "ABS": replace(_UNARY, tflm=Tflm(_TO_16)),
    "ADD": replace(_BINARY, tflm=Tflm(_TO_32), flash=6217),
    "ADD_N": replace(_BINARY, tflm=Tflm(_TO_8)),
    "ARG_MAX": replace(_ARGUMENT, tflm=Tflm(_TO_8)),
    "ARG_MIN": replace(_ARGUMENT, tflm=Tflm(_TO_8)),
    "AVERAGE_POOL_2D": replace(_POOL, tflm=Tflm(_TO_16, one_scale=True), flash=2675),
    "BATCH_MATMUL": OperatorKind(
        rows.product_rows,
        along_h=AlongH(overrides.multiplies_by_one_matrix, as_it_lies=1),
        tflm=Tflm(_TO_16, weights=1, of_weights={each: frozenset({each}) for each in _TO_16}),
    ),
    "BATCH_TO_SPACE_ND": OperatorKind(tflm=Tflm(_TO_8, rank=(3, 4, _TO_8))),
    "BROADCAST_TO": OperatorKind(tflm=Tflm(constants=(1,), sizes=(1,))),
    "CAST": replace(_UNARY, tflm=Tflm(_CAST, outputs=dict.fromkeys(_CAST, _CAST)), flash=1715),
    "CEIL": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "CONCATENATION": OperatorKind(
        rows.concatenation_rows,
        along_h=AlongH(overrides.joins_channels, overrides.channels_of_image),
        tflm=Tflm(_TO_64 | {BOOL}),
        flash=4348,
    ),
    "CONV_2D": replace(
        _CONVOLUTION,
        by_phase=ByPhase(overrides.is_dilated_by_phases, overrides.dilation_in_phase),
        tflm=Tflm(_TO_16, weights=1, of_weights=_NIBBLES),
        flash=5213,
    ),
    "COS": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "CUMSUM": OperatorKind(overwrites="first input", tflm=Tflm(_TO_8)),
    "DEPTHWISE_CONV_2D": replace(_CONVOLUTION, tflm=Tflm(_TO_16, weights=1, of_weights=_NIBBLES), flash=4649),
    "DEPTH_TO_SPACE": OperatorKind(rows.depth_to_space_rows, tflm=Tflm(_TO_8)),
    "DEQUANTIZE": replace(_UNARY, tflm=Tflm(frozenset({I8, I16, U8})), flash=1050),
    "DIV": replace(_BINARY, tflm=Tflm(_TO_8 | {I32})),
    "DYNAMIC_UPDATE_SLICE": OperatorKind(overwrites="first input", tflm=Tflm(_TO_32), flash=2748),
    "EMBEDDING_LOOKUP": OperatorKind(tflm=Tflm(_TO_8, activation=1)),
    "ELU": replace(_UNARY, tflm=Tflm(_TO_8)),
    "EQUAL": replace(_BINARY, tflm=Tflm(frozenset({F32, I8, I32, I64, BOOL}))),
    "EXP": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "EXPAND_DIMS": OperatorKind(tflm=Tflm(_TO_16, constants=(1,)), flash=1387),
    "FILL": OperatorKind(tflm=Tflm(_TO_8 | {I32}, activation=1, constants=(0,), sizes=(0,))),
    "FLOOR": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "FLOOR_DIV": replace(_BINARY, tflm=Tflm(_FLOAT)),
    "FLOOR_MOD": replace(_BINARY, tflm=Tflm(_FLOAT)),
    "FULLY_CONNECTED": OperatorKind(
        rows.dense_rows,
        along_h=AlongH(overrides.is_dense_by_element, overrides.all_dimensions_kept, is_worth_it=True),
        tflm=Tflm(_TO_16, weights=1, of_weights=_NIBBLES),
        flash=4513,
    ),
    "GATHER": OperatorKind(tflm=Tflm(_TO_8), flash=1974),
    "GATHER_ND": OperatorKind(tflm=Tflm(_TO_8)),
    "GELU": OperatorKind(is_by_channel=True),
    "GREATER": replace(_BINARY, tflm=Tflm(_TO_64)),
    "GREATER_EQUAL": replace(_BINARY, tflm=Tflm(_TO_8 | {I64, I32})),
    "HARD_SWISH": replace(_UNARY, tflm=Tflm(_TO_8)),
    "L2_NORMALIZATION": replace(_PIXELS, overwrites="first input", tflm=Tflm(_TO_8, rank=(0, 4, _TO_8))),
    "L2_POOL_2D": replace(_POOL, tflm=Tflm(_FLOAT)),
    "LEAKY_RELU": replace(_UNARY, tflm=Tflm(_TO_16)),
    "LESS": replace(_BINARY, tflm=Tflm(_TO_8 | {I64, I32}), flash=4516),
    "LESS_EQUAL": replace(_BINARY, tflm=Tflm(_TO_8 | {I64, I32})),
    "LOG": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "LOGICAL_AND": _BINARY,
    "LOGICAL_NOT": _UNARY,
    "LOGICAL_OR": _BINARY,
    "LOGISTIC": replace(_UNARY, tflm=Tflm(_TO_16)),
    "LOG_SOFTMAX": replace(_PIXELS, overwrites="first input", tflm=Tflm(_TO_8)),
    "MAXIMUM": replace(_BINARY, tflm=Tflm(_TO_64)),
    "MAX_POOL_2D": replace(_POOL, tflm=Tflm(_TO_16, one_scale=True), flash=2829),
    "MEAN": replace(_REDUCTION, tflm=Tflm(_TO_16), flash=4179),
    "MINIMUM": replace(_BINARY, tflm=Tflm(_TO_64), flash=4840),
    "MIRROR_PAD": OperatorKind(rows.mirror_rows, tflm=Tflm(_TO_8)),
    "MUL": replace(_BINARY, tflm=Tflm(_TO_32), flash=6145),
    "NEG": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "NOT_EQUAL": replace(_BINARY, tflm=Tflm(frozenset({F32, I8, I32, I64, BOOL}))),
    "PACK": OperatorKind(tflm=Tflm(_TO_64), flash=1124),
    "PAD": replace(
        _PAD,
        beyond="zero point",
        by_phase=ByPhase(overrides.pads_whole_phases, overrides.paddings_of_phase),
        tflm=Tflm(_TO_32, constants=(1,), sizes=(1,)),
        flash=3915,
    ),
    "PADV2": replace(_PAD, beyond="own value", tflm=Tflm(_TO_32, constants=(1,), sizes=(1,)), flash=3927),
    "PRELU": replace(_BINARY, tflm=Tflm(_TO_16, weights=1, of_weights={I16: frozenset({I8})}, rank=(0, 4, _FLOAT))),
    "QUANTIZE": replace(_UNARY, tflm=Tflm(frozenset(_QUANTIZED), outputs=_QUANTIZED), flash=2426),
    "REDUCE_MAX": replace(_REDUCTION, tflm=Tflm(_TO_8)),
    "REDUCE_MIN": replace(_REDUCTION, tflm=Tflm(_TO_8)),
    "RELU": replace(_UNARY, tflm=Tflm(_TO_16)),
    "RELU6": replace(_UNARY, tflm=Tflm(_TO_16)),
    "RELU_0_TO_1": OperatorKind(is_by_channel=True),
    "RELU_N1_TO_1": replace(_UNARY, overwrites=None),
    "RESHAPE": OperatorKind(rows.reshape_rows, ShapeOperand(1, option="newShape"), tflm=Tflm(sizes=(1,)), flash=991),
    "RESIZE_BILINEAR": OperatorKind(rows.bilinear_rows, _SIZE, tflm=Tflm(_TO_8, constants=(1,), sizes=(1,))),
    "RESIZE_NEAREST_NEIGHBOR": OperatorKind(
        rows.nearest_rows, _SIZE, tflm=Tflm(_TO_16, constants=(1,), sizes=(1,)), flash=2208
    ),
    "REVERSE_V2": OperatorKind(tflm=Tflm(_TO_64 | {BOOL, U8})),
    "ROUND": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "RSQRT": replace(_UNARY, tflm=Tflm(_TO_16)),
    "SELECT_V2": replace(_PIXELS, overwrites="any input", tflm=Tflm(_TO_16, activation=1), flash=5494),
    "SIGN": OperatorKind(is_by_channel=True),
    "SIN": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "SLICE": OperatorKind(
        rows.slice_rows,
        ShapeOperand(2),
        along_h=AlongH(overrides.cuts_channels, overrides.channels_cut),
        tflm=Tflm(_TO_32 | {BOOL}, sizes=(2,), rank=(0, 5, _TO_32 | {BOOL})),
        flash=2101,
    ),
    "SOFTMAX": replace(_PIXELS, overwrites="first input", tflm=Tflm(_TO_16)),
    "SPACE_TO_BATCH_ND": OperatorKind(tflm=Tflm(_TO_8, rank=(3, 4, _TO_8))),
    "SPACE_TO_DEPTH": OperatorKind(rows.space_to_depth_rows, tflm=Tflm(_TO_8)),
    "SPLIT": OperatorKind(tflm=Tflm(_TO_32, activation=1, constants=(0,)), flash=1411),
    "SPLIT_V": OperatorKind(tflm=Tflm(_TO_32, constants=(2,)), flash=1687),
    "SQRT": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "SQUARE": replace(_UNARY, tflm=Tflm(_FLOAT)),
    "SQUARED_DIFFERENCE": replace(_BINARY, tflm=Tflm(_TO_32)),
    "STRIDED_SLICE": OperatorKind(
        tflm=Tflm(_TO_32 | {BOOL}, constants=(1, 2, 3), rank=(0, 4, _TO_32 | {BOOL})), flash=5177
    ),
    "SUB": replace(_BINARY, tflm=Tflm(_TO_32), flash=6400),
    "SUM": replace(_REDUCTION, tflm=Tflm(_TO_16), flash=4094),
    "SVDF": OperatorKind(tflm=Tflm(_TO_8, weights=1)),
    "TANH": replace(_UNARY, tflm=Tflm(_TO_16)),
    "TRANSPOSE": OperatorKind(rows.transpose_rows, tflm=Tflm(_TO_16, constants=(1,), rank=(1, 5, _TO_16))),
    "TRANSPOSE_CONV": OperatorKind(
        rows.transposed_convolution_rows,
        ShapeOperand(0),
        along_h=AlongH(overrides.transposes_one_row, overrides.shape_along_h, filters=1, is_worth_it=True),
        tflm=Tflm(_TO_16, activation=2, weights=1, of_weights=_BYTES, sizes=(0,)),
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": OperatorKind(tflm=Tflm(_TO_16, weights=1)),
    "UNPACK": OperatorKind(tflm=Tflm(_TO_32)),
    "WHILE": OperatorKind(flash=976),
    "ZEROS_LIKE": OperatorKind(overwrites="first input", tflm=Tflm(_TO_8 | {I64, I32})),
}
"""Every kind of which something is known here, by the builtin's schema name."""
BY_ROWS: Mapping[str, OperatorKind] = {name: kind for name, kind in OPERATORS.items() if kind.rows is not _not_by_rows}
"""Those that are run row by row."""


def kind_of(operator: Operator) -> OperatorKind:
    """Return the row of the table; for a kind without one, a row that says that it is not run by rows."""
    return OPERATORS.get(operator.name, _OTHER)


def row_map_of(operator: Operator) -> RowMap | str:
    """Return the row map of an operator, or the reason why it cannot run for some rows at a time."""
    kind = kind_of(operator)
    if len(operator.outputs) != 1 or not _has_rows(operator, kind):
        return "its output is not one NHWC tensor with batch 1"
    found = kind.rows(operator)
    if isinstance(found, RowMap) and any(tensor.is_constant for tensor in found.images(operator)):
        return "it computes from a constant image"
    return found


def _has_rows(operator: Operator, kind: OperatorKind) -> bool:
    """Tell whether the output is an image; one without channels ends a region, since nothing else here reads it."""
    output = operator.outputs[0]
    if operator.name == "TRANSPOSE" and is_stack(output):
        return True
    return is_image(output) or (kind.drops_channels and len(output.shape) == 3 and output.shape[0] == 1)


_OTHER = OperatorKind(_not_by_rows)
