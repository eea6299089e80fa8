"""Images of which windows have all rows, turned so that stripes run along their columns."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.patterns import F32, I8, LITERT, TFLM, assert_same_bits
from tflite_memopt import Options, optimize
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.turned_images import turn_images

SENSORS, STEPS = 8, 64


class Signals:
    """A builder of networks of signals: (1, sensors, steps, channels)."""

    def __init__(self, dtype: DType = I8, channels: int = 1) -> None:
        self.b, self.dtype, self.draw = ModelBuilder(), dtype, np.random.default_rng(channels)
        self.x = self.b.input("x", (1, SENSORS, STEPS, channels), dtype)

    def filter(
        self, x: Tensor, taps: tuple[int, int], count: int, stride: tuple[int, int] = (1, 1), padding: int = VALID
    ) -> Tensor:
        """A depthwise convolution whose channels are a multiple of those of its input, or else a plain one."""
        is_depthwise = count % x.shape[3] == 0
        shape = (1, *taps, count) if is_depthwise else (count, *taps, x.shape[3])
        number = len(self.b.graph.tensors)
        if self.dtype is I8:
            values = self.draw.integers(-127, 128, shape).astype(np.int8)
            scales = per_channel(np.linspace(0.002, 0.01, count, dtype=np.float32), 3 if is_depthwise else 0)
            w, bias = self.b.constant(f"w{number}", values, scales), np.arange(count, dtype=np.int32)
        else:
            values = self.draw.normal(size=shape).astype(np.float32)
            w, bias = self.b.constant(f"w{number}", values), np.arange(count, dtype=np.float32)
        sizes = [
            -(-size // step) if padding == SAME else (size - tap) // step + 1
            for size, tap, step in zip(x.shape[1:3], taps, stride, strict=True)
        ]
        y = self.b.tensor(f"y{number}", (1, *sizes, count), self.dtype)
        fields = {"padding": padding, "strideH": stride[0], "strideW": stride[1]}
        fields |= {"dilationHFactor": 1, "dilationWFactor": 1}
        fields |= {"depthMultiplier": count // x.shape[3]} if is_depthwise else {}
        name = "DEPTHWISE_CONV_2D" if is_depthwise else "CONV_2D"
        kind = "DepthwiseConv2DOptions" if is_depthwise else "Conv2DOptions"
        self.b.operator(name, (x, w, self.b.constant(f"b{number}", bias)), (y,), kind, **fields)
        return y

    def pad(self, x: Tensor, before: int, after: int) -> Tensor:
        y = self.b.tensor(
            f"padded{len(self.b.graph.tensors)}", (*x.shape[:2], x.shape[2] + before + after, x.shape[3]), self.dtype
        )
        amounts = self.b.constant(f"{y.name}/amounts", np.asarray([(0, 0), (0, 0), (before, after), (0, 0)], np.int32))
        self.b.operator("PAD", (x, amounts), (y,), "PadOptions")
        return y

    def pool(self, x: Tensor, wide: int) -> Tensor:
        y = self.b.tensor(
            f"pooled{len(self.b.graph.tensors)}", (*x.shape[:2], x.shape[2] // wide, x.shape[3]), self.dtype
        )
        fields = {"padding": VALID, "strideH": 1, "strideW": wide, "filterHeight": 1, "filterWidth": wide}
        self.b.operator("AVERAGE_POOL_2D", (x,), (y,), "Pool2DOptions", **fields)
        return y


def eeg(dtype: DType = I8) -> Model:
    """Filters along time, one over all sensors, and a pool: EEGNet's first block (Lawhern et al., arXiv 1611.08024)."""
    net = Signals(dtype)
    found = net.filter(net.pad(net.x, 8, 7), (1, 16), 8)
    return net.b.finish(net.pool(net.filter(found, (SENSORS, 1), 16), 4))


def strided(dtype: DType = I8) -> Model:
    """Plain convolutions with strides, of several channels, and of all sensors at once in the end."""
    net = Signals(dtype, channels=3)
    found = net.filter(net.filter(net.x, (1, 5), 4, (1, 2), SAME), (3, 1), 5, (2, 1))
    return net.b.finish(net.filter(net.pool(found, 2), (found.shape[1], 1), 7))


@pytest.mark.parametrize("dtype", [I8, F32])
@pytest.mark.parametrize("make", [eeg, strided])
def test_a_turned_image_gives_the_same_bits(make: object, dtype: DType) -> None:
    assert callable(make)
    model = make(dtype)
    found = turn_images(copy_model(model))
    assert [use.rule for use in found.uses] == ["turned_images"]
    assert any(each.shape[1:2] in ((STEPS,), (STEPS // 2,)) for each in found.model.main.tensors)
    assert_same_bits(write_model(model), write_model(found.model), [0], 1, (LITERT, TFLM))


@pytest.mark.slow
def test_stripes_along_time_take_less() -> None:
    report = optimize(write_model(eeg()), Options(target="cortex-m7", samples=3)).report
    assert "turned_images" in [each.rule for each in report.rewrites]
    assert report.proofs["result"].status == "proved"
    assert report.after.required_for_target < 0.75 * report.before.required_for_target


def test_what_floats_add_in_another_order_stays() -> None:
    net = Signals(F32)
    found = net.filter(net.x, (3, 3), 4)
    model = net.b.finish(net.filter(found, (found.shape[1], 1), 8))
    (use,) = turn_images(copy_model(model)).uses
    assert len(use.operators) == 1  # the last filter alone
    other = Signals()
    assert not turn_images(other.b.finish(other.filter(other.x, (3, 3), 4))).uses  # it has rows


def test_scales_along_an_axis_of_the_image_stay() -> None:
    net = Signals(F32)
    q = net.b.tensor("q", (1, SENSORS, STEPS, 1))
    q.quantization = per_channel(np.linspace(0.01, 0.1, SENSORS, dtype=np.float32), 1)
    net.b.graph.inputs = (q,)
    net.b.operator("DEQUANTIZE", (q,), (net.x,), "DequantizeOptions")
    (use,) = turn_images(net.b.finish(net.filter(net.x, (SENSORS, 1), 4))).uses
    assert len(use.operators) == 1  # DEQUANTIZE stays
