"""The table of operator kinds: how each is evaluated on random values.

Three ways, from the most to the least that is known of a kernel:

    moves    elements are where numpy puts them (moves.py); integers that are known are computed (COUNTS)
    sums     products are added, and the rest is a function of the sum and of parameters (sums.py)
    whole    each output element is a function of its place and of all elements of all inputs: always right

A kernel that the first two do not follow for its operands is taken as the third. Subgraphs, variables and custom
operators have effects beyond their outputs: run.py has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import moves, sums
from .call import Call, CoarseError
from .ring import Value

Evaluated = Callable[[Call], list[Value]]


def whole(call: Call) -> list[Value]:
    """A function of everything."""
    return list(call.whole())


def _rows(evaluated: Evaluated, names: str) -> dict[str, Evaluated]:
    return dict.fromkeys(names.split(), evaluated)


_UNARY = (
    "ABS CEIL COS ELU EXP FLOOR GELU HARD_SWISH LEAKY_RELU LOG LOGICAL_NOT LOGISTIC NEG RELU "
    "RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SIGN SIN SQRT SQUARE TANH"
)
_BINARY = (
    "ADD_N ATAN2 DIV EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR MAXIMUM "
    "MINIMUM NOT_EQUAL POW PRELU SQUARED_DIFFERENCE"
)
_WHOLE = (
    "CONV_3D LOCAL_RESPONSE_NORMALIZATION ONE_HOT REVERSE_SEQUENCE SCATTER_ND SVDF TOPK_V2 "
    "UNIDIRECTIONAL_SEQUENCE_LSTM UNIQUE WHERE"
)
KINDS: Mapping[str, Evaluated] = {
    **_rows(sums.elementwise, f"{_UNARY} {_BINARY}"),
    **_rows(sums.sum_of, "ADD SUB"),
    **_rows(sums.pool, "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D"),
    **_rows(sums.reduction, "MEAN SUM REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD"),
    **_rows(sums.row_map_of, "SOFTMAX LOG_SOFTMAX L2_NORMALIZATION"),
    **_rows(sums.position_of, "ARG_MAX ARG_MIN"),
    **_rows(moves.reshaped, "RESHAPE SQUEEZE EXPAND_DIMS"),
    **_rows(moves.split, "SPLIT SPLIT_V"),
    **_rows(moves.padded, "PAD PADV2"),
    **_rows(moves.selected, "SELECT SELECT_V2"),
    **_rows(moves.converted, "CAST DEQUANTIZE QUANTIZE"),
    **_rows(moves.shape_of, "SHAPE RANK"),
    **_rows(whole, _WHOLE),
    "BATCH_MATMUL": sums.matrix_product,
    "BATCH_TO_SPACE_ND": moves.batch_to_space,
    "BROADCAST_ARGS": moves.broadcast_shape,
    "BROADCAST_TO": moves.broadcast,
    "CONCATENATION": moves.joined,
    "CONV_2D": sums.convolution,
    "CUMSUM": sums.by_position,
    "DEPTHWISE_CONV_2D": sums.depthwise,
    "DEPTH_TO_SPACE": moves.depth_to_space,
    "DYNAMIC_UPDATE_SLICE": moves.updated,
    "EMBEDDING_LOOKUP": moves.looked_up,
    "FILL": moves.filled,
    "FULLY_CONNECTED": sums.dense,
    "GATHER": moves.gathered,
    "GATHER_ND": moves.gathered_at,
    "MIRROR_PAD": moves.mirrored,
    "MUL": sums.product_of,
    "PACK": moves.stacked,
    "RANGE": moves.counted,
    "RELU6": sums.clamped,
    "RESIZE_BILINEAR": sums.resized_bilinearly,
    "RESIZE_NEAREST_NEIGHBOR": moves.resized_by_nearest,
    "REVERSE_V2": moves.reversed_along,
    "SLICE": moves.cut,
    "SPACE_TO_BATCH_ND": moves.space_to_batch,
    "SPACE_TO_DEPTH": moves.space_to_depth,
    "STRIDED_SLICE": moves.strided_cut,
    "TILE": moves.tiled,
    "TRANSPOSE": moves.transposed,
    "TRANSPOSE_CONV": sums.transposed_convolution,
    "UNPACK": moves.unstacked,
    "ZEROS_LIKE": moves.zeros,
}
"""By the builtin's schema name."""


def evaluate(call: Call) -> tuple[list[Value], bool]:
    """The outputs of an operator of the table, and whether it was taken as a function of everything."""
    evaluated = KINDS[call.operator.name]
    try:
        found = moves.count(call) if call.operator.name in moves.COUNTS else None
        return (evaluated(call) if found is None else found), evaluated is whole
    except CoarseError:
        return whole(call), True
