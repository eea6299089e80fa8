"""BlazeFace: Bazarevsky et al., "BlazeFace: Sub-millisecond Neural Face Detection on Mobile GPUs".

The channels and the all-single blocks are those of the front-camera model that MediaPipe ships.
"""

from __future__ import annotations

import keras
from keras import layers

from scripts.zoo_networks.layers import Tensor, conv, image, relu

FIRST = 24
# Channels and stride of the blocks up to the 16x16 grid, and on to the 8x8 grid (128x128 input).
TO_COARSE = ((24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), (56, 1), (64, 1), (72, 1), (80, 1), (88, 1))
TO_COARSER = ((96, 2), (96, 1), (96, 1), (96, 1), (96, 1))
ANCHORS = (2, 6)
REGRESSORS = 16  # A box (4 numbers) and six key points (2 each).


def blazeface(size: int = 128, divisor: int = 1) -> keras.Model:
    """Two outputs: regressors [1, 896, 16] and scores [1, 896, 1] at the full size."""
    source = image(size)
    coarse = _blocks(conv(source, FIRST // divisor, 5, 2), TO_COARSE, divisor)
    grids = (coarse, _blocks(coarse, TO_COARSER, divisor))
    return keras.Model(source, [_head(grids, REGRESSORS), _head(grids, 1)])


def _blocks(x: Tensor, blocks: tuple[tuple[int, int], ...], divisor: int) -> Tensor:
    for channels, stride in blocks:
        x = _block(x, channels // divisor, stride)
    return x


def _block(x: Tensor, channels: int, stride: int) -> Tensor:
    """Separable convolution beside a shortcut that max pools for the stride and pads with zeros to the channels."""
    main = layers.DepthwiseConv2D(3, stride, "same")(x)
    main = conv(main, channels, activation=None)
    shortcut = layers.MaxPooling2D(2, stride, "same")(x) if stride > 1 else x
    missing = channels - x.shape[-1]
    if missing:
        shortcut = keras.ops.pad(shortcut, [(0, 0), (0, 0), (0, 0), (0, missing)])
    return relu(layers.Add()([main, shortcut]))


def _head(grids: tuple[Tensor, ...], values: int) -> Tensor:
    parts = []
    for grid, anchors in zip(grids, ANCHORS, strict=True):
        cells = grid.shape[1] * grid.shape[2]
        parts.append(layers.Reshape((cells * anchors, values))(layers.Conv2D(anchors * values, 1)(grid)))
    return layers.Concatenate(axis=1)(parts)
