"""Some channels of a constant, as a constant of its own: weights and biases, split between operators, never copied."""

from __future__ import annotations

from ..ir.channels import channels_of, is_per_channel, quantization_of_channels
from ..ir.making import Array
from ..ir.model import Quantization, Tensor
from ..ir.origin import Origin, piece_of

ConstantPiece = tuple[str, Array, Quantization | None, Origin | None]
"""Name, values, quantization, and origin where it is a range of a tensor: what an editor writes a constant from."""


def constant_piece(constant: Tensor, whole: Array, axis: int, start: int, count: int, index: int) -> ConstantPiece:
    """Piece ``index`` of a constant with the values ``whole``: ``count`` channels from ``start`` on, along ``axis``.

    ``axis`` may count from the back. One value for all channels stays as it is.
    """
    dimension = axis % max(1, len(constant.shape))
    quantization = quantization_of_channels(constant.quantization, dimension, start, count)
    values = channels_of(whole, start, count, axis)
    return f"{constant.name}/part{index}", values, quantization, piece_of(constant, dimension, start)


def is_cuttable(constant: Tensor, axis: int, channels: int) -> bool:
    """Whether a dimension of the constant is that of the channels, and its scales are for all or one for each."""
    if constant.extras.get("sparsity") is not None or len(constant.shape) <= axis or constant.shape[axis] != channels:
        return False
    quantization = constant.quantization
    if quantization is None:
        return True
    if quantization.extras.get("details"):
        return False
    return not is_per_channel(quantization) or (quantization.axis == axis and quantization.scale.size == channels)
