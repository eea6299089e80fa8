"""The part of a constant that some of the channels need: of its values and of its quantization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .model import Extras, Quantization


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
    """The quantization of ``count`` channels from ``start`` on, when the channels are dimension ``axis``.

    One that is for the whole tensor, or along another axis, stays as it is.
    """
    if quantization is None or not is_per_channel(quantization) or quantization.axis != axis:
        return quantization
    cut = slice(start, start + count)
    size, zero_point = quantization.scale.size, quantization.zero_point
    return Quantization(
        quantization.scale[cut],
        zero_point[cut] if zero_point.size == size else zero_point,
        quantization.axis,
        _extras_of_channels(quantization.extras, size, cut),
    )


def is_per_channel(quantization: Quantization | None) -> bool:
    """Whether there is more than one scale or zero point."""
    return quantization is not None and max(quantization.scale.size, quantization.zero_point.size) > 1


def _extras_of_channels(extras: Extras, size: int, cut: slice) -> Mapping[str, Any]:
    """The range that the converter saw is cut with the channels; one of another length is left out."""
    kept = dict(extras)
    for name in ("min", "max"):
        found = kept.get(name)
        if found is not None and len(found) > 1:
            kept[name] = np.asarray(found)[cut] if len(found) == size else None
    return kept
