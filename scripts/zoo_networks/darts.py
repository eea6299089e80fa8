"""DARTS (second order): Liu et al., "DARTS: Differentiable Architecture Search", figures 4 and 5."""

from __future__ import annotations

import keras
from keras import layers

from scripts.zoo_networks.cells import Cell, squeeze
from scripts.zoo_networks.layers import Tensor, classifier, conv, image, relu

NORMAL = Cell(
    blocks=(
        (("separable 3x3", 0), ("separable 3x3", 1)),
        (("separable 3x3", 0), ("separable 3x3", 1)),
        (("separable 3x3", 1), ("identity", 0)),
        (("identity", 0), ("dilated 3x3", 2)),
    ),
    outputs=(2, 3, 4, 5),
)
REDUCTION = Cell(
    blocks=(
        (("max 3x3", 0), ("max 3x3", 1)),
        (("identity", 2), ("max 3x3", 1)),
        (("max 3x3", 0), ("identity", 2)),
        (("identity", 2), ("max 3x3", 1)),
    ),
    outputs=(2, 3, 4, 5),
)


def darts(size: int = 224, channels: int = 48, cells: int = 14, classes: int = 1000) -> keras.Model:
    """The ImageNet network: reduction cells, with twice the channels, at one and two thirds of the cells."""
    source = image(size)
    older = conv(conv(source, channels // 2, 3, 2), channels, 3, 2, activation=None)
    newer = conv(relu(older), channels, 3, 2, activation=None)
    for index in range(cells):
        reduction = index in (cells // 3, 2 * cells // 3)
        channels *= 2 if reduction else 1
        older, newer = newer, _cell(older, newer, channels, reduction)
    return keras.Model(source, classifier(newer, classes))


def first_cell(size: int = 28, channels: int = 48) -> keras.Model:
    """The first normal cell alone (SERENITY, section 4.1). Its older input is still twice as wide and high."""
    older = keras.Input((2 * size, 2 * size, channels), batch_size=1, name="older")
    newer = keras.Input((size, size, channels), batch_size=1, name="newer")
    return keras.Model([older, newer], _cell(older, newer, channels, reduction=False))


def _cell(older: Tensor, newer: Tensor, channels: int, reduction: bool) -> Tensor:
    same = older.shape[1] == newer.shape[1]
    older = squeeze(older, channels) if same else _halve(older, channels)
    cell = REDUCTION if reduction else NORMAL
    return cell.build(older, squeeze(newer, channels), channels, reduction)


def _halve(x: Tensor, channels: int) -> Tensor:
    """Two strided 1x1 convolutions, one of them a pixel further along the diagonal."""
    x = relu(x)
    shifted = layers.Cropping2D(((1, 0), (1, 0)))(x)
    halves = [layers.Conv2D(channels // 2, 1, 2, "same", use_bias=False)(part) for part in (x, shifted)]
    return layers.BatchNormalization()(layers.Concatenate()(halves))
