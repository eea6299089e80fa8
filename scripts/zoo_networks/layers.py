"""The few layer groups that every network here is made of. Batch 1, channels last."""

from __future__ import annotations

from typing import Any, TypeAlias

import keras
from keras import layers

Tensor: TypeAlias = Any  # A symbolic Keras tensor; Keras has no public name for it.

CLASS_LAYERS = ("predictions", "conv_preds")  # The names that Keras gives to the last layer of its own classifiers.


def image(size: int, channels: int = 3) -> Tensor:
    """The input: one square image of ``size`` by ``size`` pixels."""
    return keras.Input(shape=(size, size, channels), batch_size=1, name="image")


def conv(
    x: Tensor,
    channels: int,
    kernel: int | tuple[int, int] = 1,
    stride: int = 1,
    activation: str | None = "relu",
    dilation: int = 1,
) -> Tensor:
    """Convolution, batch norm and activation; the converter makes one CONV_2D of them."""
    x = layers.Conv2D(channels, kernel, stride, "same", dilation_rate=dilation, use_bias=False)(x)
    return _activate(layers.BatchNormalization()(x), activation)


def depthwise(
    x: Tensor, kernel: int = 3, stride: int = 1, activation: str | None = "relu", dilation: int = 1
) -> Tensor:
    """Depthwise convolution, batch norm and activation; the converter makes one DEPTHWISE_CONV_2D of them."""
    x = layers.DepthwiseConv2D(kernel, stride, "same", dilation_rate=dilation, use_bias=False)(x)
    return _activate(layers.BatchNormalization()(x), activation)


def separable(x: Tensor, channels: int, kernel: int = 3, stride: int = 1, dilation: int = 1) -> Tensor:
    """Depthwise convolution straight into a 1x1 convolution, then batch norm: two operators, no activation."""
    x = layers.DepthwiseConv2D(kernel, stride, "same", dilation_rate=dilation, use_bias=False)(x)
    return conv(x, channels, activation=None)


def relu(x: Tensor) -> Tensor:
    """An activation of its own, for the networks that put it before the convolution."""
    return layers.ReLU()(x)


def classifier(x: Tensor, classes: int, activation: str | None = None) -> Tensor:
    """Global average and a dense layer."""
    return layers.Dense(classes, activation=activation, name=CLASS_LAYERS[0])(layers.GlobalAveragePooling2D()(x))


def _activate(x: Tensor, activation: str | None) -> Tensor:
    return x if activation is None else layers.Activation(activation)(x)
