"""Padding that no window reads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    Branch,
    assert_exact,
    assert_refused,
    quantization_of,
    refusals,
    weights_quantization,
)
from tflite_memopt import Options, optimize
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import Model
from tflite_memopt.operators.window import CONVOLUTIONS
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.pixels import UNREAD_PADDING

RULES = dict(zip(CONVOLUTIONS, UNREAD_PADDING, strict=True))


def strided(name: str, branch: Branch) -> None:
    """Windows with strides whose last ones end a few rows or columns before the padding."""
    pick, dtype = branch.random, branch.random.choice((F32, I8))
    taps, steps = [pick.randint(1, 4) for _ in "hw"], [pick.randint(2, 4) for _ in "hw"]
    outputs, unread = [pick.randint(2, 4) for _ in "hw"], [pick.randint(0, step - 1) for step in steps]
    unread[0] = max(1, unread[0])
    sizes = [(out - 1) * step + tap + more for out, step, tap, more in zip(outputs, steps, taps, unread, strict=True)]
    before = [pick.randint(0, 1) for _ in "hw"]
    after = [more + pick.randint(0, 1) for more in unread]
    inner = [size - first - last for size, first, last in zip(sizes, before, after, strict=True)]
    x = branch.input((1, *(max(1, size) for size in inner), 3), dtype, **branch.quantization(dtype))
    after = [last + min(0, size - 1) for last, size in zip(after, inner, strict=True)]
    y = branch.tensor((1, *sizes, 3), dtype, **quantization_of(x))
    amounts = np.asarray([(0, 0), *zip(before, after, strict=True), (0, 0)], np.int32)
    branch.builder.operator("PAD", (x, branch.constant(amounts)), (y,), "PadOptions")
    is_depthwise = name != CONVOLUTIONS[0]
    channels = 3 if is_depthwise else 4
    shape = (1, *taps, 3) if is_depthwise else (4, *taps, 3)
    scales = None if dtype is F32 else weights_quantization(branch, channels, 3 if is_depthwise else 0)
    values = branch.values(shape, dtype)
    weights = branch.constant(values if dtype is F32 else np.maximum(values, -127), scales)
    z = branch.tensor((1, *outputs, channels), dtype, **branch.quantization(dtype))
    fields = {"padding": VALID, "strideH": steps[0], "strideW": steps[1]}
    fields |= {"dilationHFactor": 1, "dilationWFactor": 1} | ({"depthMultiplier": 1} if is_depthwise else {})
    kind = "DepthwiseConv2DOptions" if is_depthwise else "Conv2DOptions"
    bias = branch.constant(np.arange(channels, dtype=np.float32 if dtype is F32 else np.int32))
    branch.run(name, (y, weights, bias), z, kind, **fields)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_the_same_bits(name: str) -> None:
    assert_exact(RULES[name], lambda branch: strided(name, branch), 5, 60)


def downsampled(after: int = 1, size: int = 32) -> Model:
    """What PyTorch's converter writes before a stride of 2."""
    b = ModelBuilder()
    x = b.input("x", (1, size, size, 8))
    y = b.tensor("padded", (1, size + 1 + after, size + 1 + after, 8), I8, **quantization_of(x))
    amounts = np.asarray([(0, 0), (1, after), (1, after), (0, 0)], np.int32)
    b.operator("PAD", (x, b.constant("amounts", amounts)), (y,), "PadOptions")
    return b.finish(b.conv(y, 8, kernel=3, stride=2, padding=VALID))


def test_an_even_image_has_a_row_and_a_column_less() -> None:
    model = downsampled()
    Driver(model).apply_everywhere(UNREAD_PADDING)
    pad, convolution = model.main.operators
    assert pad.outputs[0].shape == (1, 33, 33, 8)
    assert convolution.inputs[0] is pad.outputs[0]
    result = optimize(write_model(downsampled()), Options(target="cortex-m7", max_slowdown=0)).report
    assert result.before.required_for_target - result.after.required_for_target >= 34 * 34 * 8 - 33 * 33 * 8
    assert result.proofs["result"].status == "proved"


def test_what_windows_read_stays() -> None:
    assert refusals(downsampled(size=31), UNREAD_PADDING[0]) == []
    model = downsampled()
    model.main.outputs = (*model.main.outputs, model.main.operators[0].outputs[0])
    assert_refused(model, UNREAD_PADDING[0], "'padded' is needed by others")
