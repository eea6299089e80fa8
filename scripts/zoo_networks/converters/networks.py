"""Seventeen small networks as people write them in PyTorch: channels first, padding in numbers, states as arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm


@dataclass(frozen=True)
class TorchNetwork:
    """The builder of a network and the shapes of its inputs, each with the batch of 1."""

    make: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]


def convolved(
    inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1, relu: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """Return a convolution with batch norm and ReLU, as torchvision has it."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), relu())


def small_cnn() -> nn.Module:
    """Return two convolutions with pooling and a flattened head, as the tutorials for digits have it."""
    image = (convolved(1, 8), nn.MaxPool2d(2), convolved(8, 16), nn.MaxPool2d(2))
    return nn.Sequential(*image, nn.Flatten(), nn.Linear(16 * 7 * 7, 32), nn.ReLU(), nn.Linear(32, 10))


class Inverted(nn.Module):
    """MobileNetV2's block, with the sum around it where shapes agree."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, kernel: int = 3, relu: type[nn.Module] = nn.ReLU
    ) -> None:
        super().__init__()
        wide = 4 * inputs
        self.body = nn.Sequential(
            *(convolved(inputs, wide, 1, relu=relu), convolved(wide, wide, kernel, stride, wide, relu)),
            *(nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs)),
        )
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Images to images."""
        made: Tensor = self.body(x)
        return x + made if self.is_residual else made


def mobilenet() -> nn.Module:
    """Return a stem and five of MobileNetV2's blocks over 96x96."""
    blocks = (Inverted(8, 8, 1), Inverted(8, 16, 2), Inverted(16, 16, 1), Inverted(16, 24, 2), Inverted(24, 24, 1))
    return nn.Sequential(convolved(3, 8, 3, 2), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))


def efficientnet_lite() -> nn.Module:
    """Return EfficientNet-Lite's blocks of 3x3 and 5x5 with ReLU6, without gates, over 64x64."""
    sizes = ((8, 8, 1, 3), (8, 16, 2, 3), (16, 16, 1, 3), (16, 24, 2, 5), (24, 24, 1, 5), (24, 32, 2, 5))
    blocks = (Inverted(*size, nn.ReLU6) for size in sizes)
    head = (convolved(32, 64, 1, relu=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(64, 10))
    return nn.Sequential(convolved(3, 8, 3, 2, relu=nn.ReLU6), *blocks, *head)


class UNet(nn.Module):
    """Two levels down and up again, with concatenated shortcuts."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([convolved(1, 8), convolved(8, 16), convolved(16, 32)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
        self.joined = nn.ModuleList([convolved(32, 16), convolved(16, 8)])
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """An image to a mask of its size."""
        kept = []
        for number, block in enumerate(self.down):
            x = block(x if not number else functional.max_pool2d(x, 2))
            kept.append(x)
        for up, joined, shortcut in zip(self.up, self.joined, kept[-2::-1], strict=True):
            x = joined(torch.cat([up(x), shortcut], 1))
        return torch.sigmoid(self.head(x))


class ConvLSTM(nn.Module):
    """One step of a convolutional LSTM; the state goes in and out."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gates = nn.Conv2d(inputs + hidden, 4 * hidden, 3, padding=1)

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """A frame and the state to the new state."""
        taken, kept, given, new = torch.chunk(self.gates(torch.cat([x, hidden], 1)), 4, 1)
        cell = torch.sigmoid(kept) * cell + torch.sigmoid(taken) * torch.tanh(new)
        return torch.sigmoid(given) * torch.tanh(cell), cell


class Gru(nn.Module):
    """A GRU over a window, and a head on its last state."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.cells = nn.GRU(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(1, steps, inputs) to scores."""
        states, _ = self.cells(x)
        found: Tensor = self.head(states[:, -1])
        return found


class Causal(nn.Module):
    """Two dilated convolutions that see the past alone, and the sum around them."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.past = 2 * dilation
        self.layers = nn.ModuleList([nn.Conv1d(channels, channels, 3, dilation=dilation) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        """(1, channels, steps) to the same."""
        made = x
        for layer in self.layers:
            made = torch.relu(layer(functional.pad(made, (self.past, 0))))
        return torch.relu(x + made)


class Tcn(nn.Module):
    """Four causal blocks over a window of sensors, and a head on the last step."""

    def __init__(self, inputs: int, channels: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Conv1d(inputs, channels, 1)
        self.blocks = nn.Sequential(*(Causal(channels, 2**level) for level in range(4)))
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(1, inputs, steps) to scores."""
        found: Tensor = self.head(self.blocks(self.stem(x))[:, :, -1])
        return found


class Chomped(nn.Module):
    """The block of Bai's TCN: dilated, with weight norm; both ends are padded and the end is cut off."""

    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.past = 2 * dilation
        layers = (nn.Conv1d(count, outputs, 3, padding=self.past, dilation=dilation) for count in (inputs, outputs))
        self.layers = nn.ModuleList([weight_norm(layer) for layer in layers])
        self.side = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """(1, inputs, steps) to (1, outputs, steps)."""
        made = x
        for layer in self.layers:
            made = torch.relu(layer(made)[:, :, : -self.past])
        return torch.relu(self.side(x) + made)


class ChompedTcn(nn.Module):
    """Four blocks of Bai's TCN over a window of sensors, and a head on the last step."""

    def __init__(self, inputs: int, channels: int, classes: int) -> None:
        super().__init__()
        blocks = (Chomped(channels if level else inputs, channels, 2**level) for level in range(4))
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(1, inputs, steps) to scores."""
        found: Tensor = self.head(self.blocks(x)[:, :, -1])
        return found


class Attention(nn.Module):
    """A transformer's block with two heads, written out, and a mean over the steps."""

    def __init__(self, width: int, heads: int, classes: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(1, steps, width) to scores."""
        steps, width = x.shape[1:]
        split = self.qkv(self.norms[0](x)).reshape(1, steps, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        shares = torch.softmax(query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5, -1)
        x = x + self.out((shares @ value).transpose(1, 2).reshape(1, steps, width))
        x = x + self.feed(self.norms[1](x))
        found: Tensor = self.head(x.mean(1))
        return found


class Detector(nn.Module):
    """A backbone and heads of boxes and scores at two scales, which are flattened and joined."""

    def __init__(self, anchors: int = 2, classes: int = 3) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            [
                nn.Sequential(convolved(3, 8, 3, 2), convolved(8, 16, 3, 2), convolved(16, 24, 3, 2)),
                convolved(24, 32, 3, 2),
            ]
        )
        self.classes = classes
        self.boxes = nn.ModuleList([nn.Conv2d(count, 4 * anchors, 3, padding=1) for count in (24, 32)])
        self.scores = nn.ModuleList([nn.Conv2d(count, classes * anchors, 3, padding=1) for count in (24, 32)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """An image to (1, places, 4) and (1, places, classes)."""
        boxes, scores = [], []
        for stage, box, score in zip(self.stages, self.boxes, self.scores, strict=True):
            x = stage(x)
            boxes.append(box(x).permute(0, 2, 3, 1).reshape(1, -1, 4))
            scores.append(score(x).permute(0, 2, 3, 1).reshape(1, -1, self.classes))
        return torch.cat(boxes, 1), torch.sigmoid(torch.cat(scores, 1))


def audio_cnn() -> nn.Module:
    """Return convolutions over raw samples with strides, as M5 has them."""
    layers: list[nn.Module] = []
    for inputs, outputs, kernel, stride in ((1, 8, 80, 16), (8, 8, 3, 1), (8, 16, 3, 1)):
        layers += [nn.Conv1d(inputs, outputs, kernel, stride), nn.BatchNorm1d(outputs), nn.ReLU(), nn.MaxPool1d(4)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 12))


def autoencoder() -> nn.Module:
    """Return a convolutional autoencoder, upsampling by repetition."""
    down = (convolved(1, 8, 3, 2), convolved(8, 16, 3, 2), convolved(16, 4))
    up = (nn.Upsample(scale_factor=2), convolved(4, 16), nn.Upsample(scale_factor=2), convolved(16, 8))
    return nn.Sequential(*down, *up, nn.Conv2d(8, 1, 3, padding=1), nn.Sigmoid())


class Residual(nn.Module):
    """ResNet's basic block."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        norm = nn.BatchNorm2d(outputs)
        self.body = nn.Sequential(
            convolved(inputs, outputs, 3, stride), nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), norm
        )
        projected = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.side = projected if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Images to images."""
        return torch.relu(self.body(x) + self.side(x))


def residual_cnn() -> nn.Module:
    """Return ResNet-8 of MLPerf Tiny's kind over 32x32."""
    blocks = (Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 32, 2))
    return nn.Sequential(convolved(3, 8), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


class Mixer(nn.Module):
    """An MLP-Mixer: patches, then two layers that mix the patches and the channels in turn."""

    def __init__(self, places: int = 64, width: int = 24, depth: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * depth)])
        self.mixers = nn.ModuleList([self._mixer(size) for _ in range(depth) for size in (places, width)])
        self.head = nn.Linear(width, 10)

    @staticmethod
    def _mixer(size: int) -> nn.Module:
        return nn.Sequential(nn.Linear(size, 2 * size), nn.ReLU(), nn.Linear(2 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        """An image to scores."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        for number, (norm, mixer) in enumerate(zip(self.norms, self.mixers, strict=True)):
            made = norm(x)
            x = x + (mixer(made) if number % 2 else mixer(made.transpose(1, 2)).transpose(1, 2))
        found: Tensor = self.head(x.mean(1))
        return found


class KeywordTransformer(nn.Module):
    """KWT: each step of an MFCC is a token, PyTorch's own encoder behind a class token, norms behind the sums."""

    def __init__(self, steps: int, features: int, width: int = 32, depth: int = 2, classes: int = 12) -> None:
        super().__init__()
        self.tokens = nn.Linear(features, width)
        self.first = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, steps + 1, width))
        layers = (nn.TransformerEncoderLayer(width, 2, 2 * width, batch_first=True) for _ in range(depth))
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(1, steps, features) to scores."""
        x = torch.cat([self.first, self.tokens(x)], 1) + self.places
        found: Tensor = self.head(self.layers(x)[:, 0])
        return found


class Encoder(nn.Module):
    """A block of a vision transformer as timm has it: norms before, PyTorch's own attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """(1, places, width) to the same."""
        split = self.qkv(self.norms[0](x)).reshape(1, x.shape[1], 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        made: Tensor = x + self.feed(self.norms[1](x))
        return made


class VisionTransformer(nn.Module):
    """Patches of 4x4 behind a class token, and three blocks."""

    def __init__(self, places: int = 64, width: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.first = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, places + 1, width))
        self.blocks = nn.Sequential(*(Encoder(width, 2) for _ in range(depth)), nn.LayerNorm(width))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """An image to scores."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        found: Tensor = self.head(self.blocks(torch.cat([self.first, x], 1) + self.places)[:, 0])
        return found


def anomaly() -> nn.Module:
    """Return the dense autoencoder of MLPerf Tiny over five frames of 128 bands, its batch norms in the layers."""
    sizes = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128)
    layers = (part for pair in pairwise(sizes) for part in (nn.Linear(*pair), nn.ReLU()))
    return nn.Sequential(*layers, nn.Linear(128, 640))


TORCH: Mapping[str, TorchNetwork] = MappingProxyType(
    {
        "small_cnn": TorchNetwork(small_cnn, ((1, 1, 28, 28),)),
        "mobilenet": TorchNetwork(mobilenet, ((1, 3, 96, 96),)),
        "unet": TorchNetwork(UNet, ((1, 1, 48, 48),)),
        "conv_lstm": TorchNetwork(lambda: ConvLSTM(2, 8), ((1, 2, 24, 24), (1, 8, 24, 24), (1, 8, 24, 24))),
        "gru": TorchNetwork(lambda: Gru(6, 24, 4), ((1, 16, 6),)),
        "tcn": TorchNetwork(lambda: Tcn(6, 16, 4), ((1, 6, 64),)),
        "attention": TorchNetwork(lambda: Attention(32, 2, 8), ((1, 24, 32),)),
        "detector": TorchNetwork(Detector, ((1, 3, 96, 96),)),
        "audio_cnn": TorchNetwork(audio_cnn, ((1, 1, 8000),)),
        "autoencoder": TorchNetwork(autoencoder, ((1, 1, 64, 64),)),
        "residual_cnn": TorchNetwork(residual_cnn, ((1, 3, 32, 32),)),
        "mixer": TorchNetwork(Mixer, ((1, 3, 32, 32),)),
        "efficientnet_lite": TorchNetwork(efficientnet_lite, ((1, 3, 64, 64),)),
        "tcn_weight_norm": TorchNetwork(lambda: ChompedTcn(6, 16, 4), ((1, 6, 64),)),
        "keyword_transformer": TorchNetwork(lambda: KeywordTransformer(98, 40), ((1, 98, 40),)),
        "vit": TorchNetwork(VisionTransformer, ((1, 3, 32, 32),)),
        "anomaly": TorchNetwork(anomaly, ((1, 640),)),
    }
)


def build(network: TorchNetwork, seed: int) -> nn.Module:
    """Return the network with random weights, whose batch norms have the statistics of random inputs."""
    torch.manual_seed(seed)
    module = network.make().train()
    with torch.no_grad():
        for sample in samples(network, seed, 4):
            module(*sample)
    return module.eval()


def samples(network: TorchNetwork, seed: int, count: int) -> Sequence[tuple[Tensor, ...]]:
    """Return random inputs, the same at every call."""
    generator = torch.Generator().manual_seed(seed)
    return [tuple(torch.rand(shape, generator=generator) * 2 - 1 for shape in network.shapes) for _ in range(count)]
