"""Random candidates of the three families that a search for a microcontroller draws from, in int8.

mobilenet   convolution, then blocks of expansion, depthwise, projection, with a sum where shapes allow it
resnet      convolution, then blocks of two 3x3 convolutions beside a skip, which is a 1x1 where shapes change
ds-cnn      for spectrograms: convolution, then pairs of depthwise and 1x1
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from tests.model_builder import ModelBuilder
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import NO_ACTIVATION
from tflite_memopt.model.ir.model import Tensor


def _head(b: ModelBuilder, x: Tensor, classes: int) -> Tensor:
    x = b.average_pool(x, min(x.shape[1:3]))
    return b.softmax(b.dense(b.reshape(x, (1, x.elements)), classes))


def mobilenet(draw: random.Random) -> ModelBuilder:
    """Return inverted bottlenecks: resolution 48 to 96, widths 0.25 to 0.75, expansions 1 to 6."""
    b, width = ModelBuilder(), draw.choice((0.25, 0.35, 0.5, 0.75))
    side = draw.choice((48, 64, 80, 96))
    x = b.conv(b.input("image", (1, side, side, draw.choice((1, 3)))), _wide(16, width), 3, 2)
    for channels, stride in zip((16, 24, 32, 64), (1, 2, 2, 2), strict=True):
        expansion, kernel = draw.choice((1, 3, 4, 6)), draw.choice((3, 5))
        for number in range(draw.choice((1, 2))):
            x = _bottleneck(b, x, _wide(channels, width), expansion, kernel, stride if number == 0 else 1)
    b.finish(_head(b, b.conv(x, _wide(160, width)), draw.choice((2, 10))))
    return b


def _wide(channels: int, width: float) -> int:
    return max(8, int(channels * width + 4) // 8 * 8)


def _bottleneck(b: ModelBuilder, x: Tensor, channels: int, expansion: int, kernel: int, stride: int) -> Tensor:
    wide = x if expansion == 1 else b.conv(x, x.shape[3] * expansion)
    y = b.conv(b.depthwise(wide, kernel, stride), channels, activation=NO_ACTIVATION)
    return b.add(x, y) if x.shape == y.shape else y


def resnet(draw: random.Random) -> ModelBuilder:
    """Return residual blocks: resolution 32 to 64, first width 8 to 24, two or three stages."""
    b, channels = ModelBuilder(), draw.choice((8, 12, 16, 24))
    side = draw.choice((32, 48, 64))
    x = b.conv(b.input("image", (1, side, side, 3)), channels, draw.choice((3, 5)), draw.choice((1, 2)))
    for stage in range(draw.choice((2, 3))):
        for number in range(draw.choice((1, 2))):
            x = _residual(b, x, channels << stage, 2 if stage and number == 0 else 1)
    b.finish(_head(b, x, 10))
    return b


def _residual(b: ModelBuilder, x: Tensor, channels: int, stride: int) -> Tensor:
    y = b.conv(b.conv(x, channels, 3, stride), channels, 3, activation=NO_ACTIVATION)
    same = x.shape == y.shape
    return b.add(x if same else b.conv(x, channels, 1, stride, activation=NO_ACTIVATION), y)


def ds_cnn(draw: random.Random) -> ModelBuilder:
    """Return separable convolutions over 25 to 98 frames of 10 to 40 features."""
    b, channels = ModelBuilder(), draw.choice((24, 32, 48, 64, 96, 128))
    frames, features = draw.choice((25, 49, 98)), draw.choice((10, 20, 40))
    x = b.conv(b.input("spectrogram", (1, frames, features, 1)), channels, draw.choice((3, 5)), draw.choice((1, 2)))
    for _ in range(draw.choice((2, 3, 4, 5))):
        x = b.conv(b.depthwise(x, 3, draw.choice((1, 1, 2))), channels)
    b.finish(_head(b, x, 12))
    return b


FAMILIES: Mapping[str, Callable[[random.Random], ModelBuilder]] = {
    "mobilenet": mobilenet,
    "resnet": resnet,
    "ds-cnn": ds_cnn,
}


def candidate(family: str, seed: int) -> bytes:
    """Return the .tflite of one candidate."""
    return write_model(FAMILIES[family](random.Random(f"{family} {seed}")).model)
