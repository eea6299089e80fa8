"""The three networks of msf-CNN's tables, as shapes: chains of convolutions without residual additions.

Source: github.com/TinyPART/msf-CNN at fd74a7c, analysis_optimization.py. Its width multiplier rounds down, so its
MobileNetV2 has 11, 5 and 8 channels where Keras has 16, 8 and 8; every expansion is a convolution, that of factor 1
too; nothing comes after the last convolution. The other two are MCUNet's vww1 and in3, without what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from scripts.zoo_networks.mcunet_shapes import MCUNETS, Mcunet, Residual


class Convolution(NamedTuple):
    """A convolution, depthwise where ``channels`` is None, with padding of ``kernel // 2`` pixels at each end."""

    channels: int | None
    kernel: int = 1
    stride: int = 1


@dataclass(frozen=True)
class Chain:
    """A network of msf-CNN: the side of its square image of three channels, its layers, and the published figures.

    ``without_ends``, ``with_ends``: least RAM in bytes without and with the network's input and output; the second is
    what its code gives with the two lines out that leave them out (analysis/fusion_cost_graph.py).
    ``mac_factor``, ``mac_factor_with_ends``: MACs at these two, in times those of the network without fusion.
    """

    side: int
    layers: tuple[Convolution, ...]
    without_ends: int
    with_ends: int
    mac_factor: float
    mac_factor_with_ends: float


def _chain(channels: int, blocks: Sequence[Residual]) -> Iterator[Convolution]:
    for block in blocks:
        yield Convolution(channels * block.expansion)
        yield Convolution(None, block.kernel, block.stride)
        yield Convolution(block.channels)
        channels = block.channels


def _of_mcunet(shapes: Mcunet) -> tuple[Convolution, ...]:
    stem = (Convolution(shapes.stem, 3, 2), Convolution(None, 3), Convolution(shapes.first))
    return (*stem, *_chain(shapes.first, shapes.blocks))


_WIDTH = 0.35
# Channels, expansion, repeats, stride of MobileNetV2's rows (Sandler et al., table 2).
_ROWS = ((16, 1, 1, 1), (24, 6, 2, 2), (32, 6, 3, 2), (64, 6, 4, 2), (96, 6, 3, 1), (160, 6, 3, 2), (320, 6, 1, 1))
_RESIDUALS = [
    Residual(int(channels * _WIDTH), expansion, 1 if repeat else stride, 3)
    for channels, expansion, repeats, stride in _ROWS
    for repeat in range(repeats)
]
_MOBILENET_V2 = (
    Convolution(int(32 * _WIDTH), 3, 2),
    *_chain(int(32 * _WIDTH), _RESIDUALS),
    Convolution(int(1280 * _WIDTH)),
)
CHAINS: Mapping[str, Chain] = MappingProxyType(
    {
        "msf_mbv2_w0.35": Chain(144, _MOBILENET_V2, 7_887, 69_311, 1.68, 1.43),
        "msf_mn2_vww5": Chain(80, _of_mcunet(MCUNETS["mcunet_vww1"]), 12_000, 26_491, 1.96, 1.11),
        "msf_mn2_320k": Chain(176, _of_mcunet(MCUNETS["mcunet_in3"]), 42_643, 125_875, 2.69, 1.56),
    }
)
