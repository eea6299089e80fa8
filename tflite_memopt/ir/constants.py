"""Values of constants: integer operands, such as axes and paddings, and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .dtype import DType
from .model import Tensor

_INTEGERS = (DType.INT32, DType.INT64)
_NUMPY = {
    DType.FLOAT32: "<f4",
    DType.INT8: "<i1",
    DType.INT16: "<i2",
    DType.INT32: "<i4",
    DType.INT64: "<i8",
    DType.BOOL: "?",
}


def integers(tensor: Tensor | None) -> npt.NDArray[np.int64] | None:
    """The values of a constant, flat; None for a missing tensor, one that is computed, or another type."""
    if tensor is None or tensor.dtype not in _INTEGERS:
        return None
    found = values(tensor)
    return None if found is None else found.ravel().astype(np.int64)


def values(tensor: Tensor) -> npt.NDArray[Any] | None:
    """The values of a constant in its shape; None for one that is computed or empty, or another type.

    Packed types (int4, int2) are not unpacked.
    """
    if tensor.buffer.data is None or tensor.dtype not in _NUMPY:
        return None
    data = np.ascontiguousarray(tensor.buffer.data)
    if data.size != tensor.elements * np.dtype(_NUMPY[tensor.dtype]).itemsize or not data.size:
        return None
    return data.view(_NUMPY[tensor.dtype]).reshape(tensor.shape)
