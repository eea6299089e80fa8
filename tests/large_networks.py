"""Networks on which searches have taken minutes, of the kinds that people publish: for measurements of run time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from scripts.makers.model_builder import ModelBuilder
from tflite_memopt.ir.constants import values
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.making import add_buffer
from tflite_memopt.ir.model import Model, Tensor


def densenet(blocks: Sequence[int] = (6, 12, 24, 16), growth: int = 8, size: int = 64) -> Model:
    """As DenseNet-121: each layer reads all layers of its block before it; batch norms are folded."""
    b = ModelBuilder()
    x = b.conv(b.conv(b.input("image", (1, size, size, 3)), growth, 3, stride=2), 2 * growth, 3, stride=2)
    for number, layers in enumerate(blocks):
        made = [x]
        for _ in range(layers):
            joined = b.concat(made) if len(made) > 1 else x
            made.append(b.conv(b.conv(_relu(b, joined), 4 * growth), growth, 3, seed=len(b.graph.operators)))
        x = _relu(b, b.concat(made))
        if number < len(blocks) - 1:
            x = b.average_pool(b.conv(x, x.shape[3] // 2), 2)
    return _classified(b, x)


def randwire(vertices: int = 29, stages: int = 2, width: int = 8, size: int = 48, seed: int = 1) -> Model:
    """Stages of random wiring: each vertex joins up to four of the six before it for a separable convolution."""
    draw, b = random.Random(seed), ModelBuilder()
    x = b.conv(b.input("image", (1, size, size, 3)), width, 3, stride=2)
    for stage in range(stages):
        made: list[Tensor] = []
        for vertex in range(vertices):
            near = made[-6:]
            sources = draw.sample(near, min(len(near), draw.randint(1, 4))) if made else [x]
            value = b.concat(sources) if len(sources) > 1 else sources[0]
            value = b.depthwise(value, stride=1 if made else 2, seed=vertex)
            made.append(b.conv(value, width << stage, seed=vertex))
        x = b.concat([each for each in made if not each.uses])
    return _classified(b, x)


def parallel_branches(branches: int = 40, width: int = 4, expansion: int = 1, size: int = 32) -> Model:
    """Branches of a 1x1 and a depthwise convolution, and a 1x1 after a wide one, that a concatenation joins."""
    b = ModelBuilder()
    x = b.conv(b.input("image", (1, size, size, 3)), 2 * width, 3)
    ends = [b.depthwise(b.conv(x, expansion * width, seed=branch), seed=branch) for branch in range(branches)]
    if expansion > 1:
        ends = [b.conv(end, width) for end in ends]
    return _classified(b, b.conv(b.concat(ends), 2 * width))


def joined_cells(cells: int = 3, convolutions: int = 5, width: int = 8, size: int = 40) -> Model:
    """Cells of separable convolutions in a row, 3x3 and 5x5, whose concatenation two convolutions read."""
    b = ModelBuilder()
    x = b.conv(b.input("image", (1, size, size, 3)), width, 3)
    for _ in range(cells):
        made = [x]
        for number in range(convolutions):
            made.append(b.conv(b.depthwise(made[-1], (3, 5)[number % 2]), width, seed=number))
        joined = b.concat(made[1:])
        x = b.conv(b.add(b.conv(joined, joined.shape[3]), b.depthwise(joined)), width)
    return _classified(b, x)


def in_floats(model: Model) -> Model:
    """The same network, changed in place, with every quantized tensor as floats."""
    for tensor in model.main.tensors:
        if tensor.quantization is None:
            continue
        held = values(tensor)
        if held is not None:
            tensor.buffer = add_buffer(model, held.astype(np.float32))
        tensor.dtype, tensor.quantization = DType.FLOAT32, None
    return model


def _relu(b: ModelBuilder, x: Tensor) -> Tensor:
    y = b.tensor(f"relu{len(b.graph.operators)}", x.shape)
    b.operator("RELU", (x,), (y,))
    return y


def _classified(b: ModelBuilder, x: Tensor) -> Model:
    pooled = b.average_pool(x, x.shape[1])
    return b.finish(b.dense(b.reshape(pooled, (1, x.shape[3])), 10))


LARGE: Mapping[str, Callable[[], Model]] = {
    "densenet": densenet,
    "randwire": randwire,
    "parallel_branches": parallel_branches,
    "wide_branches": partial(parallel_branches, expansion=4),
    "joined_cells": joined_cells,
}
