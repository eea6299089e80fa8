"""The table of operator kinds: how each is run by rows, resized, padded, run by phases, and laid along H.

What cuts and turns operators asks the table, and knows no names. To add a kind:

1. Its rows, in ``rows.py``: ``(Operator) -> RowMap | str``, the string being the reason for the report.
   A window (``is_window``) has TFLite's option ``padding``, which the writer sets to VALID.
2. The entry in ``OPERATORS``: an ``OperatorKind`` with these rows; of elementwise kinds it is ``_ELEMENTWISE``.
   Where they apply: ``resized`` (an operand or an option repeats the number of rows), ``beyond`` (the operator pads
   by itself), ``by_phase`` and ``along_h``.
3. Its row in docs/reference.md: ``python -m scripts.makers.reference`` takes it from the docstring of its rows.
4. Tests: a reason for each refusal in ``REFUSED`` and the rows against an interpreter, its name among those drawn, in
   ``tests/operators/test_receptive_field.py``; in ``tests/cascade/networks.py`` a method, its entry in ``make`` and a
   place in ``OPERATORS`` or ``KEEPING_ROWS``. Then ``tests/cascade/test_lower.py`` compares its stripes.

MACs are in ``analysis/macs.py``, instructions in ``memory/work.py``, the types that TFLM has in ``kernels/support.py``,
what the kernel takes from the arena in ``kernels/requests.py``, and what it may overwrite in ``kernels/relations.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ..ir.editor import Editor
from ..ir.model import Operator
from . import overrides, rows
from .overrides import Overrides, PaddingsOperand, ShapeOperand
from .rows import RowMap, is_image

Beyond = Literal["zero point", "own value", "not counted"]
"""The values beyond the edges of an operator's input: the zero point, a value of its own, or none."""


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
class OperatorKind:
    """How one kind of operator is cut into rows, laid along H, and run by phases.

    ``rows``: how one is run for some of its rows, or why it is not. ``resized``: the operand that must get another
    number of rows. ``beyond``: what it sees where it pads by itself. ``is_elementwise``: an output pixel depends on the
    inputs' pixels at the same place; in some kinds on all their channels. ``drops_channels``: the output has none.
    """

    rows: Callable[[Operator], RowMap | str]
    resized: ShapeOperand | PaddingsOperand | None = None
    beyond: Beyond | None = None
    is_elementwise: bool = False
    drops_channels: bool = False
    by_phase: ByPhase | None = None
    along_h: AlongH | None = None

    @property
    def is_pad(self) -> bool:
        """Tell whether all that it does is to put something around its input."""
        return isinstance(self.resized, PaddingsOperand)


_ELEMENTWISE = OperatorKind(rows.elementwise_rows, is_elementwise=True, along_h=AlongH(overrides.has_sequences_alone))
_ELEMENTWISE_BY_PHASE = replace(_ELEMENTWISE, by_phase=ByPhase(overrides.is_same_in_every_phase))
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
    "ABS": _ELEMENTWISE,
    "ADD": _ELEMENTWISE_BY_PHASE,
    "ADD_N": _ELEMENTWISE,
    "ARG_MAX": _ARGUMENT,
    "ARG_MIN": _ARGUMENT,
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": OperatorKind(rows.product_rows, along_h=AlongH(overrides.multiplies_by_one_matrix, as_it_lies=1)),
    "CAST": _ELEMENTWISE,
    "CEIL": _ELEMENTWISE,
    "CONCATENATION": OperatorKind(
        rows.concatenation_rows, along_h=AlongH(overrides.joins_channels, overrides.channels_of_image)
    ),
    "CONV_2D": replace(_CONVOLUTION, by_phase=ByPhase(overrides.is_dilated_by_phases, overrides.dilation_in_phase)),
    "COS": _ELEMENTWISE,
    "DEPTHWISE_CONV_2D": _CONVOLUTION,
    "DEPTH_TO_SPACE": OperatorKind(rows.depth_to_space_rows),
    "DEQUANTIZE": _ELEMENTWISE,
    "DIV": _ELEMENTWISE,
    "ELU": _ELEMENTWISE,
    "EQUAL": _ELEMENTWISE,
    "EXP": _ELEMENTWISE,
    "FLOOR": _ELEMENTWISE,
    "FLOOR_DIV": _ELEMENTWISE,
    "FLOOR_MOD": _ELEMENTWISE,
    "FULLY_CONNECTED": OperatorKind(
        rows.dense_rows,
        along_h=AlongH(overrides.is_dense_by_element, overrides.all_dimensions_kept, is_worth_it=True),
    ),
    "GREATER": _ELEMENTWISE,
    "GREATER_EQUAL": _ELEMENTWISE,
    "HARD_SWISH": _ELEMENTWISE_BY_PHASE,
    "L2_NORMALIZATION": _ELEMENTWISE,
    "L2_POOL_2D": _POOL,
    "LEAKY_RELU": _ELEMENTWISE_BY_PHASE,
    "LESS": _ELEMENTWISE,
    "LESS_EQUAL": _ELEMENTWISE,
    "LOG": _ELEMENTWISE,
    "LOGICAL_AND": _ELEMENTWISE,
    "LOGICAL_NOT": _ELEMENTWISE,
    "LOGICAL_OR": _ELEMENTWISE,
    "LOGISTIC": _ELEMENTWISE_BY_PHASE,
    "LOG_SOFTMAX": _ELEMENTWISE,
    "MAXIMUM": _ELEMENTWISE_BY_PHASE,
    "MAX_POOL_2D": _POOL,
    "MEAN": _REDUCTION,
    "MINIMUM": _ELEMENTWISE_BY_PHASE,
    "MIRROR_PAD": OperatorKind(rows.mirror_rows),
    "MUL": _ELEMENTWISE_BY_PHASE,
    "NEG": _ELEMENTWISE,
    "NOT_EQUAL": _ELEMENTWISE,
    "PAD": replace(
        _PAD, beyond="zero point", by_phase=ByPhase(overrides.pads_whole_phases, overrides.paddings_of_phase)
    ),
    "PADV2": replace(_PAD, beyond="own value"),
    "PRELU": _ELEMENTWISE,
    "QUANTIZE": _ELEMENTWISE_BY_PHASE,
    "REDUCE_MAX": _REDUCTION,
    "REDUCE_MIN": _REDUCTION,
    "RELU": _ELEMENTWISE_BY_PHASE,
    "RELU6": _ELEMENTWISE_BY_PHASE,
    "RELU_N1_TO_1": _ELEMENTWISE,
    "RESHAPE": OperatorKind(rows.reshape_rows, ShapeOperand(1, option="newShape")),
    "RESIZE_BILINEAR": OperatorKind(rows.bilinear_rows, _SIZE),
    "RESIZE_NEAREST_NEIGHBOR": OperatorKind(rows.nearest_rows, _SIZE),
    "ROUND": _ELEMENTWISE,
    "RSQRT": _ELEMENTWISE,
    "SELECT_V2": _ELEMENTWISE,
    "SIN": _ELEMENTWISE,
    "SLICE": OperatorKind(
        rows.slice_rows, ShapeOperand(2), along_h=AlongH(overrides.cuts_channels, overrides.channels_cut)
    ),
    "SOFTMAX": _ELEMENTWISE,
    "SPACE_TO_DEPTH": OperatorKind(rows.space_to_depth_rows),
    "SQRT": _ELEMENTWISE,
    "SQUARE": _ELEMENTWISE,
    "SQUARED_DIFFERENCE": _ELEMENTWISE,
    "SUB": _ELEMENTWISE_BY_PHASE,
    "SUM": _REDUCTION,
    "TANH": _ELEMENTWISE_BY_PHASE,
    "TRANSPOSE_CONV": OperatorKind(
        rows.transposed_convolution_rows,
        ShapeOperand(0),
        along_h=AlongH(overrides.transposes_one_row, overrides.shape_along_h, filters=1, is_worth_it=True),
    ),
}
"""Every kind that is run row by row, by its name."""


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
    return is_image(output) or (kind.drops_channels and len(output.shape) == 3 and output.shape[0] == 1)


def _not_by_rows(operator: Operator) -> str:
    return f"{operator.name} is not computed row by row"


_OTHER = OperatorKind(_not_by_rows)
