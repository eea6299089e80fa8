"""From a trained Keras model to a .tflite, the way the guides show it: no fixed batch unless the network has one."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any, Literal, cast

import keras
import tensorflow as tf

from scripts.zoo_networks.people.training import Data
from scripts.zoo_networks.quiet import NoConversionError

Numbers = Literal["float", "int8", "int16x8"]
NUMBERS: tuple[Numbers, ...] = ("float", "int8", "int16x8")
CALIBRATED = 16
"""Samples for the ranges of activations."""


def convert(model: keras.Model, data: Data, numbers: Numbers) -> bytes:
    """The bytes of the file; inputs and outputs are integers as well where the inside is.

    Raises NoConversionError where the converter refuses.
    """
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if numbers != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: _samples(data)
        sets = tf.lite.OpsSet
        wide = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [sets.TFLITE_BUILTINS_INT8 if numbers == "int8" else wide]
        kind = tf.int8 if numbers == "int8" else tf.int16
        converter.inference_input_type = converter.inference_output_type = kind
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # Keras tells where it puts a copy in between.
            return cast(bytes, converter.convert())
    except RuntimeError as error:
        raise NoConversionError(str(error).splitlines()[0]) from error


def _samples(data: Data) -> Iterator[list[Any]]:
    for _ in range(CALIBRATED):
        yield data.batch(1)[0]
