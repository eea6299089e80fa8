"""Which values an input may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..ir.affine import affine_of
from ..ir.dtype import DType
from ..ir.model import Tensor, Use

LEVELS = 1 << 16
"""Steps from the lowest to the highest value of an input: enough for every int16."""


class _Indexing(NamedTuple):
    """Which slot takes indices, and which slot they index."""

    index_slot: int
    table_slot: int


_INDEX_SLOTS = {"GATHER": _Indexing(1, 0), "EMBEDDING_LOOKUP": _Indexing(0, 1)}
_NUMPY_TYPES = {DType.BFLOAT16: np.uint16, DType.RESOURCE: np.int32, DType.INT4: np.int8, DType.UINT4: np.uint8}
_PACKED_LIMITS = {DType.INT4: (-8, 7), DType.UINT4: (0, 15), DType.INT2: (-2, 1)}
_LARGEST_INTEGER = 1 << 30
"""In magnitude, of wide integers that are not quantised: a sum of two still fits an int32."""


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The numpy type that interpreters exchange tensors of this type in."""
    return np.dtype(_NUMPY_TYPES[dtype]) if dtype in _NUMPY_TYPES else np.dtype(dtype.label)


@dataclass(frozen=True)
class InputRange:
    """Lowest and highest value, both included, and the value that stands for zero.

    ``is_known`` is False for floats that nothing says the range of.
    """

    low: float
    high: float
    zero: float
    is_known: bool = True

    @property
    def zero_level(self) -> int:
        """The level of the value that stands for zero."""
        if self.high <= self.low:
            return 0
        return round((self.zero - self.low) / (self.high - self.low) * (LEVELS - 1))

    def values(self, levels: npt.NDArray[np.int64], dtype: DType) -> npt.NDArray[Any]:
        """The values of levels from 0 to ``LEVELS - 1``, in the type of the input."""
        wanted = numpy_type(dtype)
        if wanted.kind in "iub":
            low, high = int(self.low), int(self.high)
            return (low + (levels * (high - low) + LEVELS // 2 - 1) // (LEVELS - 1)).astype(wanted)
        # One division, one product and one sum in float64: each rounded once, the same everywhere.
        share = levels.astype(np.float64) / (LEVELS - 1)
        return (share * (self.high - self.low) + self.low).astype(wanted)


def range_of(tensor: Tensor) -> InputRange:
    """The range of an input: indices stay within what they index, and floats that are quantised at once within that."""
    wanted = numpy_type(tensor.dtype)
    if wanted.kind == "b":
        return InputRange(0, 1, 0)
    if wanted.kind in "iu":
        return _integer_range(tensor, wanted)
    return _float_range(tensor)


def _integer_range(tensor: Tensor, wanted: np.dtype[Any]) -> InputRange:
    sizes = [size for use in tensor.uses if (size := _indexed_size(use)) is not None]
    if sizes:
        return InputRange(0, max(0, min(sizes) - 1), 0)
    info = np.iinfo(wanted)
    low, high = _PACKED_LIMITS.get(tensor.dtype, (int(info.min), int(info.max)))
    low, high = max(low, -_LARGEST_INTEGER), min(high, _LARGEST_INTEGER)
    quantised = affine_of(tensor)
    zero = 0 if quantised is None else quantised.zero_point
    return InputRange(low, high, min(max(zero, low), high))


def _indexed_size(use: Use) -> int | None:
    """How many entries an index in this slot chooses from; None when the slot takes no index."""
    rule = _INDEX_SLOTS.get(use.operator.name)
    if rule is None or use.slot != rule.index_slot:
        return None
    indexed = use.operator.inputs[rule.table_slot]
    axis = int(use.operator.option("axis", 0))
    return indexed.shape[axis] if indexed is not None and indexed.shape else 1


def _float_range(tensor: Tensor) -> InputRange:
    for use in tensor.uses:
        output = use.operator.outputs[0] if use.operator.name == "QUANTIZE" else None
        quantised = None if output is None else affine_of(output)
        if output is not None and quantised is not None:
            info = np.iinfo(numpy_type(output.dtype))
            scale, zero = quantised.scale, quantised.zero_point
            # Two steps beyond either end, so that clamping is seen too.
            return InputRange((int(info.min) - 2 - zero) * scale, (int(info.max) + 2 - zero) * scale, 0.0)
    return InputRange(-1.0, 1.0, 0.0, is_known=False)
