"""Sequences stood up: the same values, and stripes along them, which the proof looks into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tflite_memopt import Options, optimize, verify
from tflite_memopt.cascade.upright import upright
from tflite_memopt.equivalence.correspondence import Link
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import SAME, VALID, ModelBuilder, per_channel
from tflite_memopt.ir.check import check_model
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model, Tensor

OPTIONS = Options(samples=3, max_extra_macs=1.0)
F32, I8 = DType.FLOAT32, DType.INT8


class Sequences:
    """A builder of networks of one dimension, as Keras converts them."""

    def __init__(self, length: int, channels: int, dtype: DType = I8) -> None:
        self.b, self.dtype = ModelBuilder(), dtype
        self.random = np.random.default_rng(length)
        self.x = self.b.input("x", (1, length, channels), dtype)

    def lie(self, x: Tensor, name: str = "EXPAND_DIMS") -> Tensor:
        """(1, L, C) as (1, 1, L, C)."""
        y = self.b.tensor(f"lying{len(self.b.graph.tensors)}", (1, 1, *x.shape[1:]), self.dtype)
        told = np.asarray(1 if name == "EXPAND_DIMS" else y.shape, np.int32)
        self.b.operator(name, (x, self.b.constant(f"{y.name}/told", told)), (y,))
        return y

    def flat(self, x: Tensor) -> Tensor:
        """(1, 1, L, C) as (1, L, C), by SQUEEZE."""
        y = self.b.tensor(f"flat{len(self.b.graph.tensors)}", (1, *x.shape[2:]), self.dtype)
        self.b.operator("SQUEEZE", (x,), (y,), "SqueezeOptions", squeezeDims=np.asarray([1], np.int32))
        return y

    def conv(self, x: Tensor, channels: int, taps: int, stride: int = 1, padding: int = SAME) -> Tensor:
        length = -(-(x.shape[2] if padding == SAME else x.shape[2] - taps + 1) // stride)
        y = self.b.tensor(f"conv{len(self.b.graph.tensors)}", (1, 1, length, channels), self.dtype)
        shape = (channels, 1, taps, x.shape[3])
        if self.dtype is I8:
            scales = np.full(channels, 0.01, np.float32)
            weights = self.random.integers(-127, 128, shape).astype(np.int8)
            biases = self.b.constant(f"{y.name}/bias", np.zeros(channels, np.int32), per_channel(scales * 0.05, 0))
            filters = self.b.constant(f"{y.name}/filters", weights, per_channel(scales, 0))
        else:
            values = self.random.normal(size=shape).astype(np.float32)
            filters = self.b.constant(f"{y.name}/filters", values)
            biases = self.b.constant(f"{y.name}/bias", np.zeros(channels, np.float32))
        fields = {"padding": padding, "strideH": 1, "strideW": stride, "fusedActivationFunction": 1}
        self.b.operator("CONV_2D", (x, filters, biases), (y,), "Conv2DOptions", **fields)
        return y

    def pool(self, x: Tensor, size: int) -> Tensor:
        y = self.b.tensor(f"pool{len(self.b.graph.tensors)}", (1, 1, x.shape[2] // size, x.shape[3]), self.dtype)
        fields = {"padding": VALID, "strideH": 1, "strideW": size, "filterHeight": 1, "filterWidth": size}
        self.b.operator("MAX_POOL_2D", (x,), (y,), "Pool2DOptions", **fields)
        return y


def network(dtype: DType, **first: Any) -> Model:
    s = Sequences(192, 2, dtype)
    y = s.pool(s.conv(s.lie(s.x), 16, 9, **first), 2)
    z = s.conv(s.lie(s.flat(y), "RESHAPE"), 16, 5)
    y = s.pool(s.b.add(z, s.conv(y, 16, 1)), 4) if dtype is I8 else s.pool(z, 4)
    return s.b.finish(s.flat(s.conv(y, 4, 3, stride=2, padding=VALID)))


@pytest.mark.parametrize("dtype", [I8, F32])
@pytest.mark.parametrize("first", [{}, {"stride": 2}, {"padding": VALID}])
def test_the_same_values_from_the_same_bytes(dtype: DType, first: dict[str, Any]) -> None:
    model = network(dtype, **first)
    before = write_model(model)
    stood = upright(model)
    assert stood is not None
    check_model(stood)
    assert write_model(model) == before
    for old, new in zip(model.main.tensors, stood.main.tensors, strict=False):
        turned = len(old.shape) == 4 and old.shape[1] == 1 < old.shape[2]
        assert new.shape == ((old.shape[0], old.shape[2], 1, old.shape[3]) if turned else old.shape)
    verdicts = verify(before, write_model(stood), OPTIONS)
    assert {name: verdict.equal for name, verdict in verdicts.items()} == dict.fromkeys(verdicts, True)


@pytest.mark.parametrize("dtype", [I8, F32])
def test_stripes_along_a_sequence_are_found_and_proved(dtype: DType) -> None:
    data = write_model(network(dtype))
    result = optimize(data, OPTIONS)
    without = optimize(data, Options(cascade=False, verify=False))
    assert any(use.rule.startswith("cascade") for use in result.report.rewrites)
    assert result.report.after.required_for_target < without.report.after.required_for_target
    assert all(verdict.equal for verdict in result.report.equivalence.values())
    written = [tensor for graph in read_model(result.model).graphs for tensor in graph.tensors]
    assert any(each.shape[1] > 1 == each.shape[2] for each in written if len(each.shape) == 4 and not each.is_constant)


def test_what_another_operator_reads_stays_as_it_lies() -> None:
    s = Sequences(32, 4)
    y = s.conv(s.lie(s.x), 4, 3)
    mean = s.b.tensor("mean", (1, 1, 1, 4))
    axis = s.b.constant("axes", np.asarray([2], np.int32))
    s.b.operator("MEAN", (y, axis), (mean,), "ReducerOptions", keepDims=True)
    assert upright(s.b.finish(mean)) is None


def test_an_image_of_one_row_that_the_graph_takes_stays_as_it_lies() -> None:
    b = ModelBuilder()
    assert upright(b.finish(b.conv(b.input("x", (1, 1, 32, 4)), 4, kernel=1))) is None
    assert upright(b.finish(b.conv(b.input("image", (1, 8, 8, 4)), 4, kernel=3))) is None


def test_a_piece_of_a_sequence_that_was_stood_up_is_compared() -> None:
    whole = np.arange(24).reshape(1, 1, 8, 3)
    piece = Link(0, 0, (0, 2, 0, 0)).range_of(whole, np.zeros((1, 4, 1, 3)))
    assert piece is not None
    assert piece.tolist() == whole.reshape(1, 8, 1, 3)[:, 2:6].tolist()
    assert Link(0, 0, (0, 6, 0, 0)).range_of(whole, np.zeros((1, 4, 1, 3))) is None
