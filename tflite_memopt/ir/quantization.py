"""Questions about quantizations that more than one stage asks."""

from __future__ import annotations

import numpy as np

from .model import Quantization


def is_quantized(quantization: Quantization | None) -> bool:
    """Whether there are scales; an absent table and an empty one both mean none."""
    return quantization is not None and quantization.scale.size > 0


def quantized_alike(a: Quantization | None, b: Quantization | None) -> bool:
    """Whether the same integers mean the same numbers."""
    if a is None or b is None or not a.scale.size or not b.scale.size:
        return not is_quantized(a) and not is_quantized(b)
    return np.array_equal(a.scale, b.scale) and np.array_equal(a.zero_point, b.zero_point)
