"""HRNet for classification: Wang et al., "Deep High-Resolution Representation Learning for Visual Recognition".

The streams and the exchange between them are those of section 3; the numbers of blocks and channels and the
classification head are those of the authors' code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import keras
from keras import layers

from scripts.zoo_networks.layers import Tensor, classifier, conv, image, relu

HEAD = (32, 64, 128, 256)  # Bottleneck channels of the head's streams; the blocks put out four times as many.
EXPANSION = 4


@dataclass(frozen=True)
class Settings:
    """``modules`` of stages 2, 3 and 4; stream ``s`` of all of them has ``width << s`` channels."""

    stem: int
    first_channels: int
    first_blocks: int
    width: int
    modules: tuple[int, int, int]
    blocks: int
    head: tuple[int, int, int, int] = HEAD
    features: int = 2048
    classes: int = 1000


W18_SMALL_V1 = Settings(64, 32, 1, 16, (1, 1, 1), 2)
W18_SMALL_V2 = Settings(64, 64, 2, 18, (1, 3, 2), 2)
W32 = Settings(64, 64, 4, 32, (1, 4, 3), 4)
# With 64 channels, stage 1 binds the peak in any order. The published peaks fit 32.
W18_SMALL_V2_NARROW = replace(W18_SMALL_V2, first_channels=32)
W32_NARROW = replace(W32, first_channels=32)
TINY_V1 = Settings(4, 2, 1, 1, (1, 1, 1), 2, (1, 1, 2, 2), 8, 10)
TINY_V2 = Settings(4, 2, 2, 1, (1, 2, 1), 2, (1, 1, 2, 2), 8, 10)
TINY_W32 = Settings(4, 2, 4, 1, (1, 2, 1), 4, (1, 1, 2, 2), 8, 10)


def hrnet(settings: Settings, size: int = 256) -> keras.Model:
    """256x256 pixels, not 224x224: the published peaks (see README.md) are those of 256x256."""
    source = image(size)
    x = conv(conv(source, settings.stem, 3, 2), settings.stem, 3, 2)
    for _ in range(settings.first_blocks):
        x = _bottleneck(x, settings.first_channels)
    streams = [conv(x, settings.width, 3), conv(x, 2 * settings.width, 3, 2)]
    for stage, modules in enumerate(settings.modules):
        if stage:
            streams.append(conv(streams[-1], settings.width << (stage + 1), 3, 2))
        for _ in range(modules):
            streams = _exchange([_basic_blocks(stream, settings.blocks) for stream in streams])
    return keras.Model(source, _head(streams, settings))


def _head(streams: list[Tensor], settings: Settings) -> Tensor:
    x = _bottleneck(streams[0], settings.head[0])
    for stream, channels in zip(streams[1:], settings.head[1:], strict=True):
        x = layers.Add()([_bottleneck(stream, channels), conv(x, EXPANSION * channels, 3, 2)])
    return classifier(conv(x, settings.features), settings.classes)


def _bottleneck(x: Tensor, channels: int) -> Tensor:
    wide = EXPANSION * channels
    main = conv(conv(conv(x, channels), channels, 3), wide, activation=None)
    shortcut = x if x.shape[-1] == wide else conv(x, wide, activation=None)
    return relu(layers.Add()([main, shortcut]))


def _basic_blocks(x: Tensor, count: int) -> Tensor:
    for _ in range(count):
        channels = x.shape[-1]
        main = conv(conv(x, channels, 3), channels, 3, activation=None)
        x = relu(layers.Add()([main, x]))
    return x


def _exchange(streams: list[Tensor]) -> list[Tensor]:
    """Every stream becomes the sum of all, brought to its size."""
    mixed = []
    for to in range(len(streams)):
        total = _bring(streams, 0, to)
        for start in range(1, len(streams)):
            total = layers.Add()([total, _bring(streams, start, to)])
        mixed.append(relu(total))
    return mixed


def _bring(streams: list[Tensor], start: int, to: int) -> Tensor:
    x, channels = streams[start], streams[to].shape[-1]
    if start > to:
        height, width = streams[to].shape[1:3]
        return layers.Resizing(height, width, "nearest")(conv(x, channels, activation=None))
    for _ in range(start, to - 1):
        x = conv(x, x.shape[-1], 3, 2)
    return conv(x, channels, 3, 2, activation=None) if start < to else x
