"""Questions about quantizations that more than one stage asks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .model import Quantization, Tensor


def per_tensor(scale: float, zero_point: int) -> Quantization:
    """One scale and zero point for all elements."""
    return Quantization(np.asarray([scale], np.float32), np.asarray([zero_point], np.int64))


def is_quantized(quantization: Quantization | None) -> bool:
    """Whether there are scales; an absent table and an empty one both mean none."""
    return quantization is not None and quantization.scale.size > 0


def quantized_alike(a: Quantization | None, b: Quantization | None) -> bool:
    """Whether the same integers mean the same numbers."""
    if a is None or b is None or not a.scale.size or not b.scale.size:
        return not is_quantized(a) and not is_quantized(b)
    return np.array_equal(a.scale, b.scale) and np.array_equal(a.zero_point, b.zero_point)


@dataclass(frozen=True)
class Affine:
    """``real = scale * (q - zero_point)``, for the whole tensor."""

    scale: float
    zero_point: int


def affine_of(tensor: Tensor) -> Affine | None:
    """The parameters of a tensor; None when it has none, or more than one."""
    found = tensor.quantization
    if found is None or found.scale.size != 1 or found.zero_point.size != 1:
        return None
    return Affine(float(found.scale[0]), int(found.zero_point[0]))
