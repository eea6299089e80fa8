"""Kinds that multiply by a matrix: FULLY_CONNECTED and BATCH_MATMUL.

Source of requests: tflite-micro commit 90b983c2b3f1, kernels fully_connected.cc, fully_connected_common.cc,
batch_matmul.cc, batch_matmul_common.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..model.ir.model import DType, Operator
from ..model.ir.tensors import QUANTIZED
from .kind import F32, I8, I16, NIBBLES, TO_16, AlongH, Arrival, OperatorKind, Tflm
from .overrides import Overrides, Sequences
from .requests import BINARY, IN0, IN1, INT, TERNARY, Abi, Asks, Size, copied_shape, needed, shape_bytes
from .reuse import KernelReuse
from .rows import HYBRID, RowMap, computes_weights, image_of, is_hybrid, is_image, same_rows
from .window import overlap, unpacked_filter


def dense_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: per pixel (``keep_num_dims``), constant weights, not hybrid."""
    source, output = image_of(operator), operator.outputs[0]
    if source is None or source.shape[:3] != output.shape[:3]:
        return "it is not computed pixel by pixel"
    if computes_weights(operator):
        return "its weights are computed"
    filters = operator.inputs[1]
    if filters is None or is_hybrid(source, filters):
        return HYBRID
    return same_rows(output)


def product_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r of an input with one matrix per row, and all of a matrix that exists once: not hybrid.

    The rows of BATCH_MATMUL are the matrices of a batch, such as the heads of an attention.

    A matrix that is there once is the same for all rows: then these are the vectors of a sequence, such as queries.

        queries (1, L, 1, d)  x  keys (1, 1, S, d), adjY  =  scores (1, L, 1, S)       read whole: the keys
    """
    output, both = operator.outputs[0], list(operator.present_inputs())
    if len({tensor.dtype for tensor in both}) > 1:
        return HYBRID
    sliced = tuple(slot for slot, tensor in enumerate(both) if not set(tensor.shape[:-2]) <= {1})
    for slot in sliced:
        if not is_image(both[slot]) or both[slot].shape[1] != output.shape[1]:
            return "its matrices are neither one for each row nor one for all"
    return same_rows(output, sliced) if sliced else "it multiplies one matrix by one"


def is_dense_by_element(operator: Operator, sequences: Sequences) -> bool:
    """FULLY_CONNECTED of every element by itself."""
    source = operator.inputs[0]
    if source is None or source not in sequences or source.shape[-2] != operator.outputs[0].shape[-2]:
        return False
    return not computes_weights(operator)


def multiplies_by_one_matrix(operator: Operator, sequences: Sequences) -> bool:
    """Return a sequence by one matrix, which stays in place: a broadcast operand is the same for all rows."""
    source, matrix = operator.inputs[:2]
    if source is None or matrix is None or source not in sequences or len(source.shape) != 4:
        return False
    is_plain = not operator.option("adjX", False) and len(operator.outputs[0].shape) == 4
    return is_plain and matrix.dtype is source.dtype and set(matrix.shape[:-2]) <= {1}


def _pixel_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """FULLY_CONNECTED of every pixel by itself: a window of one pixel."""
    source, output = operator.inputs[0], operator.outputs[0]
    return () if source is None or source.shape[:3] != output.shape[:3] else overlap(operator, (1, 1))


def _per_scale(operator: Operator, _: Abi) -> tuple[int, ...]:
    """Ask for a multiplier and a shift per channel when an integer filter has several scales.

    TFLM ignores a quantization that lacks its zero points.
    """
    found = needed(operator, IN1).quantization
    is_float = needed(operator, IN0).dtype is DType.FLOAT32
    scales = 0 if is_float or found is None or not found.zero_point.size else found.scale.size
    return (scales * INT, scales * INT) if scales > 1 else ()


def _copies_of_matrices(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """Ask for a transposed copy of the left side with ``adjX``, of the right one without ``adjY``."""
    left, right = needed(operator, IN0), needed(operator, IN1)
    prepare: tuple[int, ...] = (28,) if left.dtype in QUANTIZED else ()  # QuantizationOpDataBatchMatmul
    for is_copied, side in ((operator.option("adjX", False), left), (not operator.option("adjY", False), right)):
        if is_copied:
            prepare += (Size(12, 24).on(abi), shape_bytes(side), side.nbytes)  # TfLiteEvalTensor
    return (*prepare, *copied_shape(operator, abi))


def _macs(operator: Operator) -> int:
    return operator.outputs[0].elements * needed(operator, IN1).shape[-1]


def _macs_of_matrices(operator: Operator) -> int:
    left = needed(operator, IN0)
    return operator.outputs[0].elements * (left.shape[-2] if operator.option("adjX") else left.shape[-1])


def _has_channels(operator: Operator) -> bool:
    """Tell whether the weights have several scales."""
    weights = operator.operand(1)
    found = None if weights is None else weights.quantization
    return found is not None and len(found.scale) > 1


def _is_by_pixels(operator: Operator) -> bool:
    return _has_channels(operator) and len(operator.outputs[0].shape) != 2


def _of_channels(came: str, dtype: DType, more: str = "", meets: Callable[[Operator], bool] = _has_channels) -> Arrival:
    return Arrival(came, dtype, f"with a scale per channel{more}", meets, cure=_ONE_SCALE)


_ONE_SCALE = (
    "quantize the weights of dense layers with one scale (in TensorFlow set "
    "converter._experimental_disable_per_channel_quantization_for_dense_layers)"
)
KINDS: Mapping[str, OperatorKind] = {
    "BATCH_MATMUL": OperatorKind(
        Tflm(TO_16, weights=1, of_weights={each: frozenset({each}) for each in TO_16}),
        Asks(3, Size(16, 32), BINARY, _copies_of_matrices),  # OpDataBatchMatmul
        "products",
        rows=product_rows,
        along_h=AlongH(multiplies_by_one_matrix, as_it_lies=1),
        macs=_macs_of_matrices,
        since=(Arrival("2023-09-06 5d542d7ed"), Arrival("2023-09-06 5d542d7ed", I16)),
    ),
    "FULLY_CONNECTED": OperatorKind(
        Tflm(TO_16, weights=1, of_weights=NIBBLES),
        # OpDataFullyConnected. In the wheel the parameters are aligned to 8 bytes: measured, as their size is, between
        # SOFTMAX operators of 4 bytes each.
        Asks(
            *(Size(16, 32, short=5, lp64=16), Size(48, 72, lp64=64), TERNARY, _per_scale, unpacked_filter),
            alignment=Size(4, 8, short=1, lp64=4),
        ),
        *("dense", 4513, dense_rows),
        along_h=AlongH(is_dense_by_element, lambda _, __: Overrides(fields={"keepNumDims": True}), is_worth_it=True),
        reuses=_pixel_reuses,
        macs=_macs,
        channel_axis=0,
        since=(
            _of_channels("2024-09-27 47b545074", I8),
            _of_channels("2025-01-07 10ebaab9f", I8, ", in other than two dimensions", _is_by_pixels),
            _of_channels("2025-03-17 39209b412", I16),
        ),
        versions={F32: 5, I8: 4},  # of float: one that keeps the dimensions
    ),
}
