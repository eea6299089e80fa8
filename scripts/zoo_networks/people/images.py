"""Networks that look at an image: classifiers and detectors."""

from __future__ import annotations

import keras
from keras import layers

from scripts.zoo_networks.layers import Tensor


def mobilenet_v3_small(size: int = 96) -> keras.Model:
    """MobileNetV3 small (Howard et al., arXiv 1905.02244), half the channels: HARD_SWISH and squeeze-and-excite."""
    return keras.applications.MobileNetV3Small(
        (size, size, 3), alpha=0.5, weights=None, classes=10, include_preprocessing=False
    )


def efficientnet_lite(size: int = 96) -> keras.Model:
    """In the style of EfficientNet-Lite0: inverted residuals with ReLU6, no squeeze-and-excite; half the channels."""
    inputs = keras.Input((size, size, 3))
    x = _conv(inputs, 16, 3, 2, "relu6")
    for channels, repeats, stride, kernel, factor in (
        (8, 1, 1, 3, 1),
        (12, 2, 2, 3, 6),
        (20, 2, 2, 5, 6),
        (40, 3, 2, 3, 6),
        (56, 3, 1, 5, 6),
        (96, 3, 2, 5, 6),
    ):
        for number in range(repeats):
            x = _inverted(x, channels, kernel, 1 if number else stride, factor)
    return keras.Model(inputs, _classifier(_conv(x, 320, 1, 1, "relu6"), 10))


def resnet8(size: int = 32) -> keras.Model:
    """ResNet of three blocks over 32x32, as in MLPerf Tiny."""
    inputs = keras.Input((size, size, 3))
    x = _conv(inputs, 16, 3)
    for channels in (16, 32, 64):
        x = _residual(x, channels, 1 if channels == 16 else 2)
    return keras.Model(inputs, _classifier(x, 10))


def resnet18(size: int = 64) -> keras.Model:
    """ResNet-18 (He et al., arXiv 1512.03385) with a quarter of the channels, for small images."""
    inputs = keras.Input((size, size, 3))
    x = layers.MaxPooling2D(3, 2, padding="same")(_conv(inputs, 16, 7, 2))
    for channels in (16, 32, 64, 128):
        for number in range(2):
            x = _residual(x, channels, 2 if channels > 16 and not number else 1)
    return keras.Model(inputs, _classifier(x, 10))


def ds_cnn(frames: int = 49, features: int = 10) -> keras.Model:
    """Depthwise separable CNN over a spectrogram (Zhang et al., arXiv 1711.07128), as in MLPerf Tiny."""
    inputs = keras.Input((frames, features, 1))
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(64, (10, 4), 2, "same", use_bias=False)(inputs)))
    for _ in range(4):
        x = _conv(_depthwise(x, 3), 64, 1)
    return keras.Model(inputs, _classifier(x, 12))


def squeeze_excite(size: int = 64) -> keras.Model:
    """Residual blocks with squeeze-and-excite (Hu et al., arXiv 1709.01507), swish for activation."""
    inputs = keras.Input((size, size, 3))
    x = _conv(inputs, 16, 3, 2, "swish")
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        x = _excited(_conv(_depthwise(x, 3, stride, "swish"), channels, 1, 1, "swish"))
    return keras.Model(inputs, _classifier(x, 10))


def fomo(size: int = 96) -> keras.Model:
    """FOMO-like: MobileNetV2 cut at an eighth of the image, and a class for each cell."""
    base = keras.applications.MobileNetV2((size, size, 3), alpha=0.35, weights=None, include_top=False)
    x = layers.Conv2D(32, 1, activation="relu")(base.get_layer("block_6_expand_relu").output)
    return keras.Model(base.input, layers.Softmax()(layers.Conv2D(3, 1)(x)))


def ssd(size: int = 96) -> keras.Model:
    """SSD-like heads on three scales of a small MobileNet: boxes and classes, reshaped and joined."""
    inputs = keras.Input((size, size, 3))
    x, scales = _conv(inputs, 8, 3, 2), []
    for channels, stride in ((16, 2), (32, 2), (64, 2), (64, 2)):
        x = _conv(_depthwise(_conv(_depthwise(x, 3, stride), channels, 1), 3), channels, 1)
        scales.append(x)
    boxes, scores = ([_head(x, 3 * wide, wide) for x in scales[1:]] for wide in (4, 4))
    return keras.Model(
        inputs, [layers.Concatenate(axis=1)(boxes), layers.Softmax()(layers.Concatenate(axis=1)(scores))]
    )


def yolo_tiny(size: int = 96) -> keras.Model:
    """YOLO-tiny-like: two scales, the coarse one upsampled and joined with the fine one."""
    inputs = keras.Input((size, size, 3))
    x, kept = inputs, []
    for channels in (8, 16, 32, 64):
        x = layers.MaxPooling2D(2)(_conv(x, channels, 3, 1, "leaky_relu"))
        kept.append(x)
    coarse = _conv(x, 64, 3, 1, "leaky_relu")
    fine = layers.Concatenate()([layers.UpSampling2D(2)(_conv(coarse, 32, 1, 1, "leaky_relu")), kept[-2]])
    heads = [layers.Conv2D(18, 1)(_conv(each, 64, 3, 1, "leaky_relu")) for each in (coarse, fine)]
    return keras.Model(inputs, heads)


def _head(x: Tensor, channels: int, wide: int) -> Tensor:
    return layers.Reshape((-1, wide))(layers.Conv2D(channels, 3, padding="same")(x))


def _conv(x: Tensor, channels: int, kernel: int, stride: int = 1, activation: str | None = "relu") -> Tensor:
    x = layers.BatchNormalization()(layers.Conv2D(channels, kernel, stride, "same", use_bias=False)(x))
    return x if activation is None else layers.Activation(activation)(x)


def _depthwise(x: Tensor, kernel: int, stride: int = 1, activation: str = "relu") -> Tensor:
    x = layers.BatchNormalization()(layers.DepthwiseConv2D(kernel, stride, "same", use_bias=False)(x))
    return layers.Activation(activation)(x)


def _inverted(x: Tensor, channels: int, kernel: int, stride: int, factor: int) -> Tensor:
    y = _conv(x, factor * x.shape[-1], 1, 1, "relu6") if factor > 1 else x
    y = _conv(_depthwise(y, kernel, stride, "relu6"), channels, 1, 1, None)
    return layers.Add()([x, y]) if stride == 1 and x.shape[-1] == channels else y


def _residual(x: Tensor, channels: int, stride: int) -> Tensor:
    y = _conv(_conv(x, channels, 3, stride), channels, 3, 1, None)
    if stride > 1 or x.shape[-1] != channels:
        x = _conv(x, channels, 1, stride, None)
    return layers.ReLU()(layers.Add()([x, y]))


def _excited(x: Tensor) -> Tensor:
    y = layers.GlobalAveragePooling2D(keepdims=True)(x)
    y = layers.Conv2D(x.shape[-1] // 4, 1, activation="relu")(y)
    return layers.Multiply()([x, layers.Conv2D(x.shape[-1], 1, activation="sigmoid")(y)])


def _classifier(x: Tensor, classes: int) -> Tensor:
    return layers.Dense(classes, activation="softmax")(layers.GlobalAveragePooling2D()(x))
