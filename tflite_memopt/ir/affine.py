"""Quantization with one scale and one zero point for the whole tensor."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Tensor


@dataclass(frozen=True)
class Affine:
    """``real = scale * (q - zero_point)``."""

    scale: float
    zero_point: int


def affine_of(tensor: Tensor) -> Affine | None:
    """The parameters of a tensor; None when it has none, or more than one."""
    found = tensor.quantization
    if found is None or found.scale.size != 1 or found.zero_point.size != 1:
        return None
    return Affine(float(found.scale[0]), int(found.zero_point[0]))
