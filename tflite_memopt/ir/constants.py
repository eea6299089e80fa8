"""Values of constant integer operands, such as axes and paddings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .dtype import DType
from .model import Tensor

_NUMPY = {DType.INT32: "<i4", DType.INT64: "<i8"}


def integers(tensor: Tensor | None) -> npt.NDArray[np.int64] | None:
    """The values of a constant, flat; None for a missing tensor, one that is computed, or another type."""
    if tensor is None or tensor.buffer.data is None or tensor.dtype not in _NUMPY:
        return None
    data = np.ascontiguousarray(tensor.buffer.data)
    if data.size != tensor.elements * np.dtype(_NUMPY[tensor.dtype]).itemsize or not data.size:
        return None
    return data.view(_NUMPY[tensor.dtype]).astype(np.int64)
