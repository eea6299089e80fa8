"""A little training on synthetic data: enough that no activation is dead and that batch norms have statistics."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
STEPS, BATCH, KINDS = 40, 8, 8
"""Steps of training, samples in each, and different pictures that the samples are noisy copies of."""


class Data:
    """Smooth pictures, one for each kind, with noise; and for each kind a fixed answer of every output's shape."""

    def __init__(self, model: keras.Model, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._pictures = [self._smooth(tensor.shape[1:]) for tensor in model.inputs]
        self._answers = [self._answer(tensor.shape[1:]) for tensor in model.outputs]

    def batch(self, count: int) -> tuple[list[Array], list[Array]]:
        """Inputs and outputs of ``count`` samples."""
        kinds = self._random.integers(0, KINDS, count)
        noisy = [each[kinds] + self._random.normal(0, 0.3, (count, *each.shape[1:])) for each in self._pictures]
        return [each.astype(np.float32) for each in noisy], [each[kinds] for each in self._answers]

    def _smooth(self, shape: tuple[int, ...]) -> Array:
        values = self._random.normal(0, 1, (KINDS, *shape))
        for axis in range(1, len(shape)):  # the channels stay rough
            for _ in range(2):
                values = (values + np.roll(values, 1, axis) + np.roll(values, -1, axis)) / 3
        smooth: Array = values / values.std()
        return smooth

    def _answer(self, shape: tuple[int, ...]) -> Array:
        """One class of several for scores, numbers between 0 and 1 for all else."""
        values = self._random.uniform(0, 1, (KINDS, *shape)).astype(np.float32)
        if len(shape) > 1:
            return values
        chosen: Array = np.eye(shape[-1], dtype=np.float32)[values.argmax(-1)]
        return chosen


def train(model: keras.Model, seed: int) -> None:
    """Train the model for a few steps."""
    data = Data(model, seed)
    random = np.random.default_rng(seed)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.5
        elif getattr(layer, "bias", None) is not None:
            layer.bias.assign(random.normal(0, 0.05, layer.bias.shape))
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    for _ in range(STEPS):
        inputs, answers = data.batch(BATCH)
        model.train_on_batch(inputs, answers)
