"""Networks built of MobileNet blocks: DeepLab v3, PoseNet, and the plain chain ``mobilenet_like``."""

from __future__ import annotations

import keras
from keras import layers

from scripts.zoo_networks.layers import Tensor, classifier, conv, depthwise, image

# Channels and stride after the first convolution. Howard et al., "MobileNets", table 1.
V1_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
# Expansion, channels, repeats, stride. Sandler et al., "MobileNetV2", table 2.
V2_BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_like(size: int = 224, width: float = 0.25, classes: int = 1000) -> keras.Model:
    """A chain without branches: MobileNet V1's blocks with ``width`` of the channels, ReLU, SAME padding."""
    source = image(size)
    return keras.Model(source, classifier(_v1(source, width, "relu"), classes, "softmax"))


def posenet(size: int = 257, width: float = 1.0) -> keras.Model:
    """PoseNet as TFLite ships it: MobileNet V1, output stride 32, four 1x1 heads and nothing after them.

    The heads are 17 heat maps, 34 offsets and 32 displacements forwards and backwards (17 key points, 16 joints).
    """
    source = image(size)
    x = _v1(source, width, "relu6")
    heads = [layers.Conv2D(channels, 1, name=name)(x) for name, channels in _POSENET_HEADS]
    return keras.Model(source, heads)


def deeplab(
    size: int = 257, width: float = 0.5, multiple: int = 8, channels: int = 256, classes: int = 21
) -> keras.Model:
    """DeepLab v3 as TFLite ships it for phones: MobileNet V2, output stride 8, image pooling and one 1x1 branch.

    Sandler et al., "MobileNetV2", section 6.3: the atrous branches of the pyramid are left out.
    """
    source = image(size)
    x = _v2(source, width, multiple, output_stride=8)
    side = x.shape[1]
    pooled = conv(layers.AveragePooling2D(side)(x), channels)
    pooled = layers.Resizing(side, side, "bilinear")(pooled)
    x = conv(layers.Concatenate()([pooled, conv(x, channels)]), channels)
    x = layers.Conv2D(classes, 1)(x)
    return keras.Model(source, layers.Resizing(size, size, "bilinear")(x))


_POSENET_HEADS = (("heatmap", 17), ("offset", 34), ("displacement_forward", 32), ("displacement_backward", 32))


def _v1(x: Tensor, width: float, activation: str) -> Tensor:
    x = conv(x, _scaled(32, width), 3, 2, activation)
    for channels, stride in V1_BLOCKS:
        x = conv(depthwise(x, 3, stride, activation), _scaled(channels, width), activation=activation)
    return x


def _v2(x: Tensor, width: float, multiple: int, output_stride: int) -> Tensor:
    """The trunk without its last convolution. Beyond the output stride, strides become dilations."""
    x = conv(x, _scaled(32, width, multiple), 3, 2, "relu6")
    reached, dilation = 2, 1
    for expansion, channels, repeats, first_stride in V2_BLOCKS:
        for repeat in range(repeats):
            wanted = first_stride if repeat == 0 else 1
            stride = wanted if reached < output_stride else 1
            x = _inverted_residual(x, expansion, _scaled(channels, width, multiple), stride, dilation)
            reached *= stride
            dilation *= wanted // stride
    return x


def _inverted_residual(x: Tensor, expansion: int, channels: int, stride: int, dilation: int) -> Tensor:
    inner = conv(x, expansion * x.shape[-1], activation="relu6") if expansion > 1 else x
    inner = depthwise(inner, 3, stride, "relu6", dilation)
    inner = conv(inner, channels, activation=None)
    return layers.Add()([x, inner]) if stride == 1 and x.shape[-1] == channels else inner


def _scaled(channels: int, width: float, multiple: int = 1) -> int:
    """``width`` of the channels, as the nearest multiple."""
    return max(multiple, int(channels * width + multiple / 2) // multiple * multiple)
