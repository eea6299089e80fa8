"""Networks of which other tools publish the RAM: their shapes, with random weights.

The padding of a convolution with a stride is a layer of its own where the source's files have one (MCUNet, msf-CNN).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import keras
from keras import layers

from scripts.zoo_networks.layers import Tensor, classifier, conv, depthwise, image
from scripts.zoo_networks.mcunet_shapes import MCUNETS, Mcunet, Residual
from scripts.zoo_networks.msf_cnn import CHAINS, Chain, Convolution


def mobilenet(
    make: Callable[..., keras.Model], width: float, side: int, classes: int, channels: int = 3
) -> keras.Model:
    """MobileNet V1 or V2 of Keras, as ST's model zoo has them (github.com/STMicroelectronics/stm32ai-modelzoo)."""
    body = make(alpha=width, input_shape=(side, side, channels), include_top=False, weights=None)
    return keras.Model(body.input, classifier(body.output, classes, "softmax"))


def st_yololcv1(side: int) -> keras.Model:
    """ST's YOLO for one class and five anchors: four convolutions of stride 2, four separable ones, a pool of stride 1.

    Source: st_yolo_lc_v1.py of github.com/STMicroelectronics/stm32ai-modelzoo-services.
    """
    source = x = image(side)
    for channels in (16, 32, 64, 128):
        x = conv(x, channels, 3, 2)
    for channels, is_pooled in ((256, False), (256, True), (128, False), (256, False)):
        x = conv(depthwise(x, activation=None), channels)
        x = layers.MaxPooling2D(2, 1, "same")(x) if is_pooled else x
    return keras.Model(source, conv(x, 5 * (5 + 1), activation=None))


def mcunet(shapes: Mcunet) -> keras.Model:
    """A network of MCUNet's zoo."""
    source = image(shapes.side)
    x = _convolution(source, Convolution(shapes.stem, 3, 2))
    x = _residual(x, Residual(shapes.first, 1, 1, 3))
    for block in shapes.blocks:
        x = _residual(x, block)
    return keras.Model(source, classifier(x, shapes.classes))


def chain(shapes: Chain) -> keras.Model:
    """A network of msf-CNN's tables, as its code counts it: without residual additions."""
    source = x = image(shapes.side)
    for layer in shapes.layers:
        x = _convolution(x, layer)
    return keras.Model(source, x)


def _residual(x: Tensor, block: Residual) -> Tensor:
    inner = x
    if block.expansion > 1:
        inner = _convolution(inner, Convolution(block.expansion * x.shape[-1]))
    inner = _convolution(inner, Convolution(None, block.kernel, block.stride))
    inner = _convolution(inner, Convolution(block.channels), None)
    return layers.Add()([x, inner]) if block.stride == 1 and x.shape[-1] == block.channels else inner


def _convolution(x: Tensor, layer: Convolution, activation: str | None = "relu6") -> Tensor:
    padding = "same"
    if layer.stride > 1:
        x, padding = layers.ZeroPadding2D(layer.kernel // 2)(x), "valid"
    if layer.channels is None:
        x = layers.DepthwiseConv2D(layer.kernel, layer.stride, padding, use_bias=False)(x)
    else:
        x = layers.Conv2D(layer.channels, layer.kernel, layer.stride, padding, use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return x if activation is None else layers.Activation(activation)(x)


_V1, _V2 = keras.applications.MobileNet, keras.applications.MobileNetV2
FLOWERS, IMAGENET = 5, 1000
OTHERS: Mapping[str, Callable[[], keras.Model]] = MappingProxyType(
    {
        **{name: partial(mcunet, shapes) for name, shapes in MCUNETS.items()},
        **{name: partial(chain, shapes) for name, shapes in CHAINS.items()},
        "st_mobilenet_v1_0.25_96": partial(mobilenet, _V1, 0.25, 96, FLOWERS),
        "st_mobilenet_v1_0.25_96_gray": partial(mobilenet, _V1, 0.25, 96, FLOWERS, 1),
        "st_mobilenet_v1_0.25_224": partial(mobilenet, _V1, 0.25, 224, FLOWERS),
        "st_mobilenet_v1_0.5_224": partial(mobilenet, _V1, 0.5, 224, FLOWERS),
        "st_mobilenet_v1_1.0_224": partial(mobilenet, _V1, 1.0, 224, IMAGENET),
        "st_mobilenet_v2_0.35_128": partial(mobilenet, _V2, 0.35, 128, IMAGENET),
        "st_mobilenet_v2_0.35_224": partial(mobilenet, _V2, 0.35, 224, IMAGENET),
        "st_mobilenet_v2_1.0_224": partial(mobilenet, _V2, 1.0, 224, IMAGENET),
        "mobilenet_v2_0.30_64": partial(mobilenet, _V2, 0.3, 64, IMAGENET),
        "mobilenet_v2_0.30_80": partial(mobilenet, _V2, 0.3, 80, IMAGENET),
        "st_yololcv1_192": partial(st_yololcv1, 192),
        "st_yololcv1_224": partial(st_yololcv1, 224),
        "st_yololcv1_256": partial(st_yololcv1, 256),
    }
)
