"""AmoebaNet-A, mobile: Real et al., "Regularized Evolution for Image Classifier Architecture Search", figure 5.

N = 4 normal cells a stack and F = 50 channels in the first (section 5.2). The stem is NASNet's: a convolution
and two reduction cells.
"""

from __future__ import annotations

import keras
from keras import layers

from scripts.zoo_networks.cells import Cell, squeeze
from scripts.zoo_networks.layers import Tensor, classifier, conv, image, relu

NORMAL = Cell(
    blocks=(
        (("average 3x3", 0), ("max 3x3", 0)),
        (("identity", 0), ("average 3x3", 1)),
        (("separable 5x5", 2), ("separable 3x3", 1)),
        (("separable 3x3", 2), ("identity", 1)),
        (("average 3x3", 4), ("separable 3x3", 0)),
    ),
    outputs=(3, 5, 6),
)
REDUCTION = Cell(
    blocks=(
        (("average 3x3", 0), ("separable 3x3", 1)),
        (("max 3x3", 1), ("max 3x3", 0)),
        (("max 3x3", 0), ("separable 7x7", 2)),
        (("separable 7x7", 0), ("average 3x3", 1)),
        (("separable 3x3", 3), ("1x7 7x1", 0)),
    ),
    outputs=(4, 5, 6),
)
STEM_CHANNELS = 32


def amoebanet(size: int = 224, channels: int = 50, repeats: int = 4, classes: int = 1000) -> keras.Model:
    """``repeats`` normal cells in each of three stacks; the channels double at each reduction."""
    source = image(size)
    older, newer = None, conv(source, STEM_CHANNELS, 3, 2, activation=None)
    stack = [False] * repeats
    width = channels / 4  # The two reduction cells of the stem bring it to `channels`.
    for reduction in [True, True, *stack, True, *stack, True, *stack]:
        width *= 2 if reduction else 1
        older, newer = newer, _cell(older, newer, int(width), reduction)
    return keras.Model(source, classifier(relu(newer), classes))


def _cell(older: Tensor | None, newer: Tensor, channels: int, reduction: bool) -> Tensor:
    squeezed = squeeze(newer, channels)
    fitted = squeezed if older is None else _fit(older, newer, channels)
    return (REDUCTION if reduction else NORMAL).build(fitted, squeezed, channels, reduction)


def _fit(older: Tensor, newer: Tensor, channels: int) -> Tensor:
    if older.shape[1] == newer.shape[1]:
        return squeeze(older, channels)
    x = relu(older)
    shifted = layers.Cropping2D(((1, 0), (1, 0)))(layers.ZeroPadding2D(((0, 1), (0, 1)))(x))
    sizes = (channels // 2, channels - channels // 2)
    halves = [
        layers.Conv2D(width, 1, use_bias=False)(layers.AveragePooling2D(1, 2)(part))
        for part, width in zip((x, shifted), sizes, strict=True)
    ]
    return layers.BatchNormalization()(layers.Concatenate()(halves))
