"""The RAM of a model, before it is ever deployed: in a training loop, or in a search for architectures.

Keras models need TensorFlow: ``pip install tflite-memopt[tensorflow]``.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from .errors import UsageError
from .options import Options
from .oracle.levels import CANDIDATES, Ram, RamEffort, RamOracle
from .pipeline import optimize

_SAMPLES = 2
"""Representative inputs; the ranges need not be good, they must only be there."""


class Precision(enum.Enum):
    """What the numbers in the file are."""

    FLOAT32 = "float32"
    SMALL_WEIGHTS = "float32, weights in int8"
    INT8 = "int8"


def ram_of(
    model: Any,
    target: str | None = None,
    effort: RamEffort = "stock",
    optimized: bool = False,
    precision: Precision = Precision.INT8,
    kernels: str | None = None,
) -> Ram:
    """Bytes of the arena that firmware must reserve for a model on the target, or on 32 bits; and what that guarantees.

    ``model``: a .tflite as bytes or as a path, a Keras model, or a graph without weights: a
    :class:`~tflite_memopt.oracle.description.GraphSketch` or the dictionary that describes one. ``effort``: ``stock``
    as it stands, ``bound``, ``order``, ``plan``, ``stripes`` or ``search``: see ``GUARANTEES`` in
    :mod:`tflite_memopt.oracle.levels`, whose ``RamOracle`` is the same for many models. ``optimized``: after
    :func:`tflite_memopt.optimize` with everything that it does, without verification. A Keras model is converted to
    ``precision``; random inputs give the ranges of integers, which decide no sizes. Raises UsageError when TensorFlow
    is not installed, and as :func:`tflite_memopt.optimize`.
    """
    candidate = model if isinstance(model, CANDIDATES) else to_tflite(model, precision, seed=0)
    if not optimized:
        return RamOracle.on(target, kernels).ram(candidate, effort)
    if not isinstance(candidate, (bytes, str, os.PathLike)):
        raise UsageError("optimized=True needs a file: a graph without weights has effort='search'")
    memory = optimize(candidate, Options(target=target, kernels=kernels, verify=False)).report.after
    return Ram(memory.required_for_target, "optimized", memory.arena_bytes, memory.macs)


def ram_callback(limit: int, **choices: Any) -> Any:
    """A Keras callback that, when training starts, works out ``ram_of(model, **choices)`` and keeps it as ``ram``.

    ``limit`` in bytes: a model that needs more raises UsageError before any time is spent on it.
    """
    keras = _tensorflow().keras

    class RamCallback(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        ram = 0

        def on_train_begin(self, logs: Any = None) -> None:
            del logs  # Keras passes it
            self.ram = ram_of(self.model, **choices)
            if self.ram > limit:
                raise UsageError(f"the model needs {self.ram:,} bytes of RAM, {self.ram - limit:,} more than allowed")

    return RamCallback()


def to_tflite(model: Any, precision: Precision, seed: int) -> bytes:
    """A Keras model converted by the stock converter, its batch 1.

    Inputs and outputs are int8 too with ``Precision.INT8``; ``seed`` is that of the random inputs for its ranges.
    """
    tf = _tensorflow()
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


def _tensorflow() -> Any:
    try:
        import tensorflow
    except ImportError as error:
        raise UsageError(
            "converting a Keras model needs TensorFlow: pip install 'tflite-memopt[tensorflow]'"
        ) from error
    return tensorflow
