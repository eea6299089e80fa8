"""Questions about tensors that more than one stage asks: constants, quantizations, channels, place in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .model import DType, Extras, Quantization, Tensor

INDICES = (DType.INT32, DType.INT64)
"""Types of operands that say shapes, axes and places."""
QUANTIZED = (DType.INT8, DType.INT16)
"""Types of activations that TFLM computes with in integers."""
FLOATS = (DType.FLOAT32, DType.FLOAT16)
_READ = (DType.FLOAT32, *QUANTIZED, *INDICES, DType.BOOL)


def integers(tensor: Tensor | None) -> npt.NDArray[np.int64] | None:
    """Return the values of a constant, flat; None for a missing tensor, one that is computed, or another type."""
    if tensor is None or tensor.dtype not in INDICES:
        return None
    found = values(tensor)
    return None if found is None else found.ravel().astype(np.int64)


def values(tensor: Tensor) -> npt.NDArray[Any] | None:
    """Return the values of a constant in its shape; None for one that is computed or empty, or another type.

    Packed types (int4, int2) are not unpacked.
    """
    if tensor.buffer.data is None or tensor.dtype not in _READ:
        return None
    data = np.ascontiguousarray(tensor.buffer.data)
    dtype: np.dtype[Any] = np.dtype(tensor.dtype.label).newbyteorder("<")
    if data.size != tensor.elements * dtype.itemsize or not data.size:
        return None
    return data.view(dtype).reshape(tensor.shape)


def nibbles(tensor: Tensor) -> npt.NDArray[np.int8] | None:
    """Return the values of a constant of 4 bits in its shape: two to a byte, the lower one first; None for another."""
    data = tensor.buffer.data
    if tensor.dtype is not DType.INT4 or data is None or not data.size or data.size != tensor.file_bytes:
        return None
    both = data.view(np.int8)
    flat = np.stack((both << 4 >> 4, both >> 4), axis=1).ravel()
    return flat[: tensor.elements].reshape(tensor.shape)


def packed(nibbles: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """Return the bytes of a constant of 4 bits, whose values these are."""
    low, high = np.append(nibbles.ravel(), np.zeros(nibbles.size % 2, np.int8)).view(np.uint8).reshape(-1, 2).T
    found: npt.NDArray[np.uint8] = low & 15 | high << 4
    return found


def per_tensor(scale: float, zero_point: int) -> Quantization:
    """One scale and zero point for all elements."""
    return Quantization(np.asarray([scale], np.float32), np.asarray([zero_point], np.int64))


def is_quantized(quantization: Quantization | None) -> bool:
    """Tell whether there are scales; an absent table and an empty one both mean none."""
    return quantization is not None and quantization.scale.size > 0


def quantized_alike(a: Quantization | None, b: Quantization | None) -> bool:
    """Tell whether the same integers mean the same numbers."""
    if a is None or b is None or not a.scale.size or not b.scale.size:
        return not is_quantized(a) and not is_quantized(b)
    return np.array_equal(a.scale, b.scale) and np.array_equal(a.zero_point, b.zero_point)


@dataclass(frozen=True)
class Affine:
    """``real = scale * (q - zero_point)``, for the whole tensor."""

    scale: float
    zero_point: int


def affine_of(tensor: Tensor) -> Affine | None:
    """Return the parameters of a tensor; None when it has none, or more than one."""
    found = tensor.quantization
    if found is None or found.scale.size != 1 or found.zero_point.size != 1:
        return None
    return Affine(float(found.scale[0]), int(found.zero_point[0]))


def zero_of(tensor: Tensor) -> int:
    """Return the integer that stands for zero in an activation; 0 where it is not quantized."""
    quantization = tensor.quantization
    return 0 if quantization is None or not quantization.zero_point.size else int(quantization.zero_point[0])


def channels_of(values: npt.NDArray[Any], start: int, count: int, axis: int = -1) -> npt.NDArray[Any]:
    """``count`` channels of an array from ``start`` on, which are dimension ``axis``.

    One that has no channels, a scalar or one value for all of them, stays as it is.
    """
    if not values.shape or values.shape[axis] == 1:
        return values
    cut = [slice(None)] * values.ndim
    cut[axis] = slice(start, start + count)
    return values[tuple(cut)]


def quantization_of_channels(
    quantization: Quantization | None, axis: int, start: int, count: int
) -> Quantization | None:
    """Return the quantization of ``count`` channels from ``start`` on, when the channels are dimension ``axis``.

    One that is for the whole tensor, or along another axis, stays as it is.
    """
    if quantization is None or not is_per_channel(quantization) or quantization.axis != axis:
        return quantization
    cut = slice(start, start + count)
    size, zero_point = quantization.scale.size, quantization.zero_point
    points, extras = zero_point[cut] if zero_point.size == size else zero_point, quantization.extras
    return Quantization(quantization.scale[cut], points, quantization.axis, _extras_of_channels(extras, size, cut))


def is_per_channel(quantization: Quantization | None) -> bool:
    """Tell whether there is more than one scale or zero point."""
    return quantization is not None and max(quantization.scale.size, quantization.zero_point.size) > 1


def has_several_scales(quantization: Quantization | None) -> bool:
    """Tell whether elements have different scales or zero points; equal ones, however many are listed, are one."""
    return quantization is not None and any(
        np.unique(each).size > 1 for each in (quantization.scale, quantization.zero_point)
    )


def _extras_of_channels(extras: Extras, size: int, cut: slice) -> Mapping[str, Any]:
    """Return the range that the converter saw is cut with the channels; one of another length is left out."""
    kept = dict(extras)
    for name in ("min", "max"):
        found = kept.get(name)
        if found is not None and len(found) > 1:
            kept[name] = np.asarray(found)[cut] if len(found) == size else None
    return kept


def with_channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a tensor with channels first, such as (N, C, H, W) or (N, C, L), with its channels last."""
    return (*shape[:1], *shape[2:], *shape[1:2])


def is_channels_last(shape: Sequence[int], first: Sequence[int]) -> bool:
    """Tell whether a shape is ``first`` with channels last, and is another one."""
    return tuple(shape) == with_channels_last(first) != tuple(first)


def in_head(tensor: Tensor) -> bool:
    """Tell whether TFLM places a tensor in the head: constants are in the file, variables in the tail.

    A placeholder is a variable that the plan has an offset for: then it is in the head as well (micro_allocator.cc).

    The handle that VAR_HANDLE gives lives in the kernel's own data (TFLM kernels/var_handle.cc).
    """
    if tensor.is_placeholder:
        return tensor.nbytes != 0
    is_handle = tensor.producer is not None and tensor.producer.name == "VAR_HANDLE"
    return not (tensor.is_constant or tensor.is_variable or tensor.nbytes == 0 or is_handle)


def same_padding(size: int, outputs: int, stride: int, reach: int) -> tuple[int, int]:
    """Compute the padding before and after an axis under SAME: tensorflow/lite/kernels/padding.h.

    ``reach``: of the window, with its dilation.
    """
    total = max(0, (outputs - 1) * stride + reach - size)
    return total // 2, total - total // 2
