"""The three networks of msf-CNN's tables, as shapes: chains of convolutions without residual additions.

Source: github.com/TinyPART/msf-CNN at fd74a7c, analysis_optimization.py. Its width multiplier rounds down, so its
MobileNetV2 has 11, 5 and 8 channels where Keras has 16, 8 and 8; every expansion is a convolution, that of factor 1
too; nothing comes after the last convolution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple


class Convolution(NamedTuple):
    """A convolution, depthwise where ``channels`` is None; SAME padding of ``kernel // 2`` pixels at each end."""

    channels: int | None
    kernel: int = 1
    stride: int = 1


@dataclass(frozen=True)
class Chain:
    """A network of msf-CNN: the side of its square image of three channels, its layers, and the published figures.

    ``without_ends``, ``with_ends``: least RAM in bytes without and with the network's input and output.
    ``mac_factor``: MACs of the first of these, in times those of the network without fusion.
    """

    side: int
    layers: tuple[Convolution, ...]
    without_ends: int
    with_ends: int
    mac_factor: float


def _blocks(channels: int, blocks: Sequence[tuple[int, int, int, int]]) -> Iterator[Convolution]:
    """Inverted residuals, each from (channels, expansion, stride, kernel)."""
    for wanted, expansion, stride, kernel in blocks:
        yield Convolution(channels * expansion)
        yield Convolution(None, kernel, stride)
        yield Convolution(wanted)
        channels = wanted


_WIDTH = 0.35
# Channels, expansion, repeats, stride of MobileNetV2's rows (Sandler et al., table 2).
_ROWS = ((16, 1, 1, 1), (24, 6, 2, 2), (32, 6, 3, 2), (64, 6, 4, 2), (96, 6, 3, 1), (160, 6, 3, 2), (320, 6, 1, 1))
_MOBILENET_V2 = (
    Convolution(int(32 * _WIDTH), 3, 2),
    *_blocks(
        int(32 * _WIDTH),
        [
            (int(channels * _WIDTH), expansion, 1 if repeat else stride, 3)
            for channels, expansion, repeats, stride in _ROWS
            for repeat in range(repeats)
        ],
    ),
    Convolution(int(1280 * _WIDTH)),
)
_STEM = (Convolution(16, 3, 2), Convolution(None, 3), Convolution(8))
_VWW5 = (
    (16, 6, 2, 3),
    (16, 3, 1, 3),
    (16, 3, 1, 3),
    (24, 3, 2, 7),
    (24, 6, 1, 3),
    (24, 5, 1, 5),
    (40, 6, 2, 7),
    (40, 6, 1, 7),
    (48, 6, 1, 3),
    (48, 4, 1, 3),
    (96, 5, 2, 5),
    (96, 5, 1, 3),
    (96, 4, 1, 3),
    (160, 3, 1, 7),
)
_320K = (
    (16, 3, 2, 7),
    (16, 5, 1, 3),
    (16, 5, 1, 7),
    (16, 4, 1, 5),
    (24, 5, 2, 5),
    (24, 5, 1, 5),
    (24, 5, 1, 5),
    (40, 5, 2, 3),
    (40, 6, 1, 7),
    (40, 4, 1, 5),
    (48, 5, 1, 5),
    (48, 5, 1, 7),
    (48, 5, 1, 3),
    (96, 6, 2, 3),
    (96, 5, 1, 7),
    (96, 4, 1, 3),
    (160, 5, 1, 7),
)
CHAINS: Mapping[str, Chain] = MappingProxyType(
    {
        "msf_mbv2_w0.35_144": Chain(144, _MOBILENET_V2, 7_887, 69_311, 1.68),
        "msf_mn2_vww5_80": Chain(80, (*_STEM, *_blocks(8, _VWW5)), 12_000, 26_491, 1.96),
        "msf_mn2_320k_176": Chain(176, (*_STEM, *_blocks(8, _320K)), 42_643, 125_875, 2.69),
    }
)
