"""``vgg_like``: the convolutions of Simonyan and Zisserman's VGG-16, for the cascading benchmarks."""

from __future__ import annotations

import keras
from keras import layers

from scripts.zoo_networks.layers import classifier, image

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # Channels and 3x3 convolutions before each 2x2 pool.
INITIAL = "he_normal"  # Keeps the size of the activations, which nothing else does here.


def vgg_like(size: int = 224, divisor: int = 1, classes: int = 1000) -> keras.Model:
    """A chain without branches. The three dense layers (494 MB of weights) are one, behind a global average."""
    source = x = image(size)
    for channels, count in STAGES:
        for _ in range(count):
            x = layers.Conv2D(channels // divisor, 3, padding="same", activation="relu", kernel_initializer=INITIAL)(x)
        x = layers.MaxPooling2D(2)(x)
    return keras.Model(source, classifier(x, classes, "softmax"))
