"""From a Keras model of the zoo to a .tflite of batch 1; random inputs give the ranges of integers."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

_SAMPLES = 2
"""Representative inputs; the ranges need not be good, they must only be there."""


class Precision(enum.Enum):
    """What the numbers in the file are."""

    FLOAT32 = "float32"
    SMALL_WEIGHTS = "float32, weights in int8"
    INT8 = "int8"


def to_tflite(model: Any, precision: Precision, seed: int) -> bytes:
    """A Keras model converted by the stock converter, its batch 1.

    Inputs and outputs are int8 too with ``Precision.INT8``; ``seed`` is that of the random inputs for its ranges.
    """
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

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
    for _ in range(_SAMPLES):
        yield [random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
