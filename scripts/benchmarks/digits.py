"""A network's accuracy on digits in clutter, after a short training: those of scikit-learn, 8 x 8 pixels each.

A scene is a frame of 16 x 16: one digit somewhere over pieces of others, enlarged to what the network reads. 1,297
digits are for training, the other 500 for the test (Mnih et al., arXiv 1406.6247, have such scenes).
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_memopt.model.ir.editor import RELU, SAME
from tflite_memopt.model.ir.model import Model, Operator, Tensor

Floats = npt.NDArray[np.float32]
FRAME, PIECES, TEST, BATCH = 16, 2, 500, 32
_RATE = 1e-2


def accuracy(model: Model, count: int, seed: int) -> float:
    """Return the share of 2,000 scenes that a float network of this structure gets right after ``count`` others."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    keras.utils.set_random_seed(seed)
    network, side = in_keras(model), model.main.inputs[0].shape[1]
    rate = keras.optimizers.schedules.CosineDecay(_RATE, count // BATCH)
    network.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    network.fit(*scenes(count, side, seed, for_test=False), batch_size=BATCH, verbose=0)
    return float(network.evaluate(*scenes(2_000, side, 0, for_test=True), batch_size=BATCH, verbose=0)[1])


@cache
def _digits() -> tuple[Floats, npt.NDArray[np.int64]]:
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    return (found.images[order] / 16).astype(np.float32), found.target[order]


def scenes(count: int, side: int, seed: int, for_test: bool) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return images of [count, side, side, 1] from 0 to 1, and what digit each shows."""
    taken = slice(TEST) if for_test else slice(TEST, None)
    images, labels = _digits()[0][taken], _digits()[1][taken]
    draw = np.random.default_rng((seed, for_test))
    chosen, frames = draw.integers(len(images), size=count), np.zeros((count, FRAME, FRAME), np.float32)
    for frame, number in zip(frames, chosen, strict=True):
        for piece in images[draw.integers(len(images), size=PIECES)]:
            (row, column), (top, left) = draw.integers(5, size=2), draw.integers(FRAME - 3, size=2)
            frame[top : top + 4, left : left + 4] = piece[row : row + 4, column : column + 4]
        top, left = draw.integers(FRAME - 7, size=2)
        frame[top : top + 8, left : left + 8] = images[number]
    enlarged = np.arange(side) * FRAME // side
    return frames[:, enlarged][:, :, enlarged, None], labels[chosen]


def in_keras(model: Model) -> Any:
    """Return the network that a candidate's graph is, not trained, with a normalization behind each convolution."""
    import keras

    (image,) = model.main.inputs
    made: dict[Tensor, Any] = {image: keras.Input(image.shape[1:])}
    for operator in model.main.operators:
        inputs = [made[tensor] for tensor in operator.present_inputs() if tensor in made]
        made[operator.outputs[0]] = _layer(keras.layers, operator, inputs)
    return keras.Model(made[image], made[model.main.outputs[0]])


def _layer(layers: Any, operator: Operator, inputs: list[Any]) -> Any:
    (x, *others), shape = inputs, operator.outputs[0].shape
    match operator.name:
        case "ADD":
            return x + others[0]
        case "RESHAPE":
            return layers.Reshape(shape[1:])(x)
        case "AVERAGE_POOL_2D":
            return layers.AveragePooling2D(int(operator.option("filterHeight", 1)))(x)
        case "FULLY_CONNECTED":
            return layers.Dense(shape[1])(x)
        case "SOFTMAX":
            return layers.Softmax()(x)
    kernel, stride = operator.inputs[1], int(operator.option("strideH", 1))
    assert kernel is not None
    said = {"strides": stride, "padding": "same" if operator.option("padding", SAME) == SAME else "valid"}
    if operator.name == "CONV_2D":
        x = layers.Conv2D(shape[3], kernel.shape[1], use_bias=False, **said)(x)
    else:
        x = layers.DepthwiseConv2D(kernel.shape[1], use_bias=False, **said)(x)
    x = layers.BatchNormalization(momentum=0.9)(x)
    return layers.ReLU()(x) if operator.option("fusedActivationFunction", RELU) == RELU else x
