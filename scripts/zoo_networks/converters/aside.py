"""Five networks of PyTorch that are kept aside: rules are not made on them, so that they show what rules are worth."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from .networks import TorchNetwork, convolved


class Yolo(nn.Module):
    """A backbone, a path back up that joins two scales, and a head of 1x1 at each."""

    def __init__(self, outputs: int = 24) -> None:
        super().__init__()
        self.stem = nn.Sequential(convolved(3, 8, 3, 2), convolved(8, 16, 3, 2), convolved(16, 32, 3, 2))
        self.deep, self.side = convolved(32, 48, 3, 2), nn.Conv2d(48, 16, 1)
        self.joined = convolved(48, 32)
        self.heads = nn.ModuleList([nn.Conv2d(count, outputs, 1) for count in (32, 48)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """An image to a grid of boxes at two scales."""
        fine = self.stem(x)
        coarse = self.deep(fine)
        up = functional.interpolate(self.side(coarse), scale_factor=2.0, mode="nearest")
        return self.heads[0](self.joined(torch.cat([up, fine], 1))), self.heads[1](coarse)


class Gated(nn.Module):
    """MobileNetV3's block: a gate of channels behind the depthwise convolution, and hard swish."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        wide = 4 * inputs
        self.expand = nn.Sequential(nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.Hardswish())
        depthwise = nn.Conv2d(wide, wide, 5, stride, 2, groups=wide, bias=False)
        self.depthwise = nn.Sequential(depthwise, nn.BatchNorm2d(wide), nn.Hardswish())
        squeeze = (nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, inputs, 1), nn.ReLU(), nn.Conv2d(inputs, wide, 1))
        self.gate = nn.Sequential(*squeeze, nn.Hardsigmoid())
        self.project = nn.Sequential(nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Images to images."""
        made = self.depthwise(self.expand(x))
        made = self.project(made * self.gate(made))
        return x + made if self.is_residual else made


def mobilenet_v3() -> nn.Module:
    """Return a stem and four gated blocks over 64x64."""
    stem = (nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
    blocks = (Gated(8, 8, 1), Gated(8, 16, 2), Gated(16, 16, 1), Gated(16, 24, 2))
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))


class Next(nn.Module):
    """ConvNeXt's block: 7x7 by channels, a layer norm with channels last, and two dense layers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(channels, channels, 7, padding=3, groups=channels), nn.LayerNorm(channels)
        self.dense = nn.Sequential(nn.Linear(channels, 4 * channels), nn.ReLU(), nn.Linear(4 * channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        """Images to images."""
        made = self.dense(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))
        return x + made.permute(0, 3, 1, 2)


def convnext() -> nn.Module:
    """Return patches and two blocks at each of two scales over 64x64."""
    layers = (nn.Conv2d(3, 16, 4, 4), Next(16), Next(16), nn.Conv2d(16, 32, 2, 2), Next(32), Next(32))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


class Crnn(nn.Module):
    """Convolutions over a strip of text, then a GRU along it."""

    def __init__(self, classes: int = 12) -> None:
        super().__init__()
        pools = (nn.MaxPool2d(2), nn.MaxPool2d(2), nn.MaxPool2d((4, 1)))
        blocks = (convolved(1, 8), convolved(8, 16), convolved(16, 24))
        self.strip = nn.Sequential(*(part for pair in zip(blocks, pools, strict=True) for part in pair))
        self.cells, self.head = nn.GRU(48, 24, batch_first=True), nn.Linear(24, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(1, 1, 32, 64) to scores of 16 places."""
        found = self.strip(x)
        states, _ = self.cells(found.flatten(1, 2).transpose(1, 2))
        scores: Tensor = self.head(states)
        return scores


class Denoiser(nn.Module):
    """A signal down and up again by strides of 2, with sums as shortcuts."""

    def __init__(self) -> None:
        super().__init__()
        widths = (1, 8, 16, 24)
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList([nn.Conv1d(a, b, 5, 2, 2) for a, b in pairs])
        self.up = nn.ModuleList([nn.ConvTranspose1d(b, a, 4, 2, 1) for a, b in reversed(pairs)])

    def forward(self, x: Tensor) -> Tensor:
        """(1, 1, 512) to the same."""
        kept = []
        for layer in self.down:
            kept.append(x)
            x = torch.relu(layer(x))
        for layer, shortcut in zip(self.up, reversed(kept), strict=True):
            x = torch.relu(layer(x)) + shortcut
        return x


ASIDE: Mapping[str, TorchNetwork] = MappingProxyType(
    {
        "yolo": TorchNetwork(Yolo, ((1, 3, 96, 96),)),
        "mobilenet_v3": TorchNetwork(mobilenet_v3, ((1, 3, 64, 64),)),
        "convnext": TorchNetwork(convnext, ((1, 3, 64, 64),)),
        "crnn": TorchNetwork(Crnn, ((1, 1, 32, 64),)),
        "denoiser": TorchNetwork(Denoiser, ((1, 1, 512),)),
    }
)
