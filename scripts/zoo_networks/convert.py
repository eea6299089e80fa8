"""From a Keras model to the bytes of a .tflite, with the stock converter."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, cast

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

SAMPLES = 2  # Representative inputs; the ranges need not be good, they must only be there.


class Precision(enum.Enum):
    """What the numbers in the file are."""

    FLOAT32 = "float32"
    SMALL_WEIGHTS = "float32, weights in int8"
    INT8 = "int8"


def to_tflite(model: keras.Model, precision: Precision, seed: int) -> bytes:
    """The converted model, in the precision asked for. Inputs and outputs are int8 too with ``Precision.INT8``."""
    shapes = [(1, *tensor.shape[1:]) for tensor in model.inputs]
    specs = [tf.TensorSpec(shape, tf.float32, tensor.name) for shape, tensor in zip(shapes, model.inputs, strict=True)]
    traced = tf.function(lambda *inputs: model(inputs, training=False)).get_concrete_function(*specs)
    # Freezing first: the converter sees constants, so that it can fold batch norm into the convolutions.
    converter = tf.lite.TFLiteConverter.from_concrete_functions([convert_variables_to_constants_v2(traced)])
    if precision is not Precision.FLOAT32:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision is Precision.INT8:
        converter.representative_dataset = lambda: _samples(shapes, seed)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return cast(bytes, converter.convert())


def _samples(shapes: list[tuple[int, ...]], seed: int) -> Iterator[list[np.ndarray[Any, np.dtype[np.float32]]]]:
    random = np.random.default_rng(seed)
    for _ in range(SAMPLES):
        yield [random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
