"""Networks with the shapes that vector kernels take: does a file that we write meet a fault of a kernel library?"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from tests.model_builder import ModelBuilder
from tflite_memopt import Options, optimize
from tflite_memopt.errors import MemoptError
from tflite_memopt.kernels.faults import faults_in
from tflite_memopt.kernels.targets import profile_for
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor

_CHANNELS = (3, 8, 16, 16, 24, 32, 48, 64)
_MOST_VALUES = 1 << 16


@dataclass
class Met:
    """Faults that networks met as they came and as they were written, by name."""

    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    mended: int = 0
    wrong: list[str] = field(default_factory=list)


def vector_network(number: int) -> Model:
    """Two to seven int8 layers over an image: pads, strides and channels at random, a residual where one fits."""
    draw = random.Random(f"kernels {number}")
    b = ModelBuilder()
    shape = (1, draw.randrange(4, 41), draw.randrange(4, 41), draw.choice(_CHANNELS))
    y = earlier = b.input("x", shape, zero_point=draw.choice((0, -7, 3)))
    for seed in range(draw.randint(2, 7)):
        made = _layer(b, y, draw, seed)
        if made.elements > _MOST_VALUES:
            break
        y = b.add(made, earlier) if made.shape == earlier.shape and draw.random() < 0.7 else made
        earlier = y if draw.random() < 0.6 else earlier
    return b.finish(y)


def _layer(b: ModelBuilder, x: Tensor, draw: random.Random, seed: int) -> Tensor:
    _, height, width, depth = x.shape
    padding, stride = draw.choice((SAME, SAME, SAME, VALID)), draw.choice((1, 1, 2))
    kernel = min(draw.choice((2, 3, 3, 3, 5)), height, width)
    kind = draw.choice(("depthwise", "depthwise", "conv", "pointwise", "pointwise", "pool", "transposed"))
    if kind == "depthwise":
        return b.depthwise(x, kernel, stride, padding, seed=seed)
    if kind == "conv" and depth <= 32:
        return b.conv(x, draw.choice((8, 16, 24)), kernel, stride, padding, seed=seed)
    if kind == "pool" and min(height, width) >= 6:
        return b.average_pool(x, 2)
    if kind == "transposed" and height * width * depth * 4 <= _MOST_VALUES and depth <= 32:
        return _transposed(b, x, draw.choice((2, 3, 4)), draw.choice((8, 16)), seed)
    return b.conv(x, draw.choice(_CHANNELS[1:]), 1, 1, SAME, seed=seed)


def _transposed(b: ModelBuilder, x: Tensor, kernel: int, channels: int, seed: int) -> Tensor:
    _, height, width, depth = x.shape
    y = b.tensor(f"transposed{seed}", (1, 2 * height, 2 * width, channels))
    sizes = b.constant(f"{y.name}/shape", np.asarray(y.shape, np.int32))
    values = np.random.default_rng(seed).integers(-99, 99, (channels, kernel, kernel, depth)).astype(np.int8)
    operands = sizes, b.constant(f"{y.name}/weights", values, per_tensor(0.002, 0)), x
    b.operator("TRANSPOSE_CONV", operands, (y,), "TransposeConvOptions", strideH=2, strideW=2, padding=SAME)
    return y


def met_by(target: str, first: int, count: int, options: Options) -> Met:
    """Optimize networks for a target and look for faults in what was written, but those that came with the model."""
    met, profile = Met(), profile_for(target)
    for number in range(first, first + count):
        model = vector_network(number)
        came = Counter(each.fault.name for each in faults_in(model, profile))
        met.before.update(came.keys())
        try:
            result = optimize(write_model(model), options)
        except MemoptError as error:
            met.refused[type(error).__name__] += 1
            continue
        left = Counter(each.fault.name for each in faults_in(read_model(result.model), profile))
        met.after.update(left.keys())
        met.mended += any(each.rule == "padding_apart" for each in result.report.rewrites)
        if left - came:
            met.wrong.append(f"network {number}: {dict(left)}, the original {dict(came)}")
    return met
