"""Networks that give an image back: U-Net, autoencoder, super-resolution."""

from __future__ import annotations

import keras
from keras import layers

from scripts.zoo_networks.layers import Tensor


def unet(size: int = 64, filters: int = 8, levels: int = 3, resizes: bool = False) -> keras.Model:
    """U-Net (Ronneberger et al., arXiv 1505.04597): up by transposed convolutions, or by resizing (``resizes``)."""
    inputs = x = keras.Input((size, size, 3))
    kept = []
    for level in range(levels):
        x = _twice(x, filters * 2**level)
        kept.append(x)
        x = layers.MaxPooling2D(2)(x)
    x = _twice(x, filters * 2**levels)
    for level in reversed(range(levels)):
        channels = filters * 2**level
        if resizes:
            x = layers.Conv2D(channels, 1, activation="relu")(layers.UpSampling2D(2, interpolation="bilinear")(x))
        else:
            x = layers.Conv2DTranspose(channels, 2, 2)(x)
        x = _twice(layers.Concatenate()([kept[level], x]), channels)
    return keras.Model(inputs, layers.Conv2D(2, 1, activation="softmax")(x))


def unet_resize(size: int = 64) -> keras.Model:
    """The U-Net that resizes."""
    return unet(size, resizes=True)


def autoencoder(size: int = 64) -> keras.Model:
    """Convolutions down to an eighth and transposed ones up again, for anomalies in pictures."""
    inputs = x = keras.Input((size, size, 1))
    for filters in (16, 32, 32):
        x = layers.Conv2D(filters, 3, 2, "same", activation="relu")(x)
    for filters in (32, 32, 16):
        x = layers.Conv2DTranspose(filters, 3, 2, "same", activation="relu")(x)
    return keras.Model(inputs, layers.Conv2D(1, 3, padding="same", activation="sigmoid")(x))


def super_resolution(size: int = 48) -> keras.Model:
    """ESPCN (Shi et al., arXiv 1609.05158): convolutions, then channels become pixels (DEPTH_TO_SPACE)."""
    inputs = keras.Input((size, size, 1))
    x = layers.Conv2D(32, 5, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    return keras.Model(inputs, _DepthToSpace(2)(layers.Conv2D(4, 3, padding="same")(x)))


class _DepthToSpace(keras.layers.Layer):  # type: ignore[misc, unused-ignore]
    """Keras has no such layer."""

    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block

    def call(self, x: Tensor) -> Tensor:
        """The operator."""
        import tensorflow as tf

        return tf.nn.depth_to_space(x, self.block)

    def compute_output_shape(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Larger by the block along both sides."""
        batch, height, width, channels = shape
        assert height is not None
        assert width is not None
        assert channels is not None
        return batch, self.block * height, self.block * width, channels // self.block**2


def _twice(x: Tensor, filters: int) -> Tensor:
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    return x
