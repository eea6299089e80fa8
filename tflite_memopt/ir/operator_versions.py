"""The version of an operator that the types and ranks of its tensors ask for, for the operators that the tool writes.

Interpreters refuse a version that they do not know, and TFLM looks at none. Source: tensorflow/lite/tools/versioning/
op_version.cc, ``GetBuiltinOperatorVersion`` (tensorflow 02087409073e).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .dtype import DType
from .model import Tensor

_BY_TYPE: Mapping[str, Mapping[DType, int]] = {
    "ADD": {DType.INT8: 2, DType.INT16: 3, DType.INT64: 4},
    "CONCATENATION": {DType.INT8: 2, DType.INT16: 3, DType.UINT32: 4},
    "FULLY_CONNECTED": {DType.FLOAT32: 5},
    "PAD": {DType.INT8: 2, DType.INT16: 3},
    "PADV2": {DType.INT8: 2, DType.INT16: 3},
    "RESIZE_NEAREST_NEIGHBOR": {DType.INT8: 2, DType.INT16: 4},
    "SLICE": {DType.INT8: 2, DType.INT16: 4, DType.UINT32: 6},
    "SPLIT": {DType.INT8: 2, DType.INT32: 3, DType.INT16: 4},
    "SPLIT_V": {DType.INT8: 2},
    "STRIDED_SLICE": {DType.INT8: 2, DType.BOOL: 3, DType.UINT32: 7},
}
"""By the type of the data, which is that of the first output. FULLY_CONNECTED: one that keeps the dimensions."""
_ABOVE_RANK_4: Mapping[str, int] = {"PAD": 4, "PADV2": 4, "SLICE": 5, "STRIDED_SLICE": 4}


def operator_version(name: str, outputs: Sequence[Tensor]) -> int:
    """The version to write; 1 for an operator that is not in the tables."""
    if not outputs:
        return 1
    by_rank = _ABOVE_RANK_4.get(name, 1) if len(outputs[0].shape) > 4 else 1
    return max(by_rank, _BY_TYPE.get(name, {}).get(outputs[0].dtype, 1))
