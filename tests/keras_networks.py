"""Small networks of Keras, and the int8 files that TensorFlow's converter makes of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def separable(width: int) -> Any:
    """Return a classifier of 32x32 images: convolution, a depthwise one, 1x1, pool."""
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            *(layers.Conv2D(width, 3, strides=2, padding="same", use_bias=False), layers.BatchNormalization()),
            *(layers.ReLU(), layers.DepthwiseConv2D(3, padding="same"), layers.ReLU(), layers.Conv2D(2 * width, 1)),
            *(layers.ReLU(), layers.GlobalAveragePooling2D(), layers.Dense(10, activation="softmax")),
        ]
    )


def quantized(model: Any) -> bytes:
    """Return the int8 file, its scales from random images."""
    import tensorflow as tf

    draw = np.random.default_rng(0)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: (
        [draw.random((1, *model.input_shape[1:]), np.float32)] for _ in range(4)
    )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses statistics, and does without
        made: bytes = converter.convert()
    return made
