"""Sequences laid along H: the same values, and stripes along them, which the verification looks into."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cascade.test_lower import assert_equal
from tests.model_builder import ModelBuilder, per_channel
from tests.profiles import examples
from tflite_memopt import Options, optimize, verify
from tflite_memopt.kernels.prices import Prices
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.work import WorkLimit, instructions, operator_work
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators.window import CONVOLUTIONS
from tflite_memopt.search.cascade.search import OtherForm, cascade
from tflite_memopt.search.rewrite.in_one_row import lay_in_one_row
from tflite_memopt.search.rewrite.sequences_along_h import sequences_along_h

OPTIONS = Options(samples=3, max_slowdown=1.0)
F32, I8 = DType.FLOAT32, DType.INT8


def along_h(model: Model) -> Model:
    """The model with its sequences along H."""
    found = sequences_along_h(copy_model(model))
    assert found.uses
    check_model(found.model)
    return found.model


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

    def transposed(self, x: Tensor, channels: int, taps: int, stride: int = 2) -> Tensor:
        """Conv1DTranspose of Keras, SAME, without a bias."""
        y = self.b.tensor(f"up{len(self.b.graph.tensors)}", (1, 1, x.shape[2] * stride, channels), self.dtype)
        weights = self.random.integers(-127, 128, (channels, 1, taps, x.shape[3]))
        filters = (
            self.b.constant(f"{y.name}/w", weights.astype(np.int8), per_channel(np.full(channels, 0.01, np.float32), 0))
            if self.dtype is I8
            else self.b.constant(f"{y.name}/w", weights.astype(np.float32) / 128)
        )
        shape = self.b.constant(f"{y.name}/shape", np.asarray(y.shape, np.int32))
        fields = {"padding": SAME, "strideH": 1, "strideW": stride}
        self.b.operator("TRANSPOSE_CONV", (shape, filters, x), (y,), "TransposeConvOptions", **fields)
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
    laid = along_h(model)
    assert write_model(model) == before
    shapes = {tensor.name: tensor.shape for tensor in laid.main.tensors}
    for old in model.main.tensors:
        if old.name in shapes and not old.is_constant and old not in (*model.main.inputs, *model.main.outputs):
            assert shapes[old.name] == (1, old.shape[-2], 1, old.shape[-1])
    assert len(laid.main.operators) < len(model.main.operators)
    verdicts = verify(before, write_model(laid), OPTIONS)
    assert {name: verdict.equal for name, verdict in verdicts.items()} == dict.fromkeys(verdicts, True)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [pytest.param(I8, marks=pytest.mark.slow), F32])
def test_the_scratch_of_a_transposed_convolution_of_a_sequence_is_cut(dtype: DType) -> None:
    """TFLM's kernel adds up its whole output in 32 bits: the peak of an autoencoder."""
    s = Sequences(64, 8, dtype)
    y = s.transposed(s.transposed(s.lie(s.x), 16, 7), 4, 5)
    data = write_model(s.b.finish(s.flat(y)))
    laid = along_h(read_model(data))
    assert [each.outputs[0].shape[1] for each in laid.main.operators if each.name == "TRANSPOSE_CONV"] == [128, 256]
    result = optimize(data, replace(OPTIONS, kernels="reference", objective="head", max_slowdown=1.0, effort="quick"))
    assert result.report.proofs["result"].status == "proved"
    if dtype is I8:  # of floats there is no scratch
        assert result.report.after.arena_bytes < 0.6 * result.report.before.arena_bytes


@pytest.mark.few(2)
@pytest.mark.parametrize("extra", [0.1, 0.3, 0.5, 0.8])
def test_the_limit_on_run_time_counts_from_the_model_as_it_was_given(extra: float) -> None:
    """Along H it takes 26 % more instructions on Helium before anything is cut."""
    model, options = network(I8), Options(target="cortex-m55", max_slowdown=extra)
    limit = WorkLimit(instructions(model, options.profile), extra, options.profile)
    assert limit.is_kept_by(along_h(model)) == (extra > 0.1)
    found = cascade(
        model, options.profile, options.search, lambda _: None, other_form=OtherForm(sequences_along_h)
    ).model
    assert limit.is_kept_by(found)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [I8, F32])
def test_stripes_along_a_sequence_are_found_and_proved(dtype: DType) -> None:
    data = write_model(network(dtype))
    result = optimize(data, replace(OPTIONS, max_slowdown=1.0))  # on Helium filters along H take so much longer
    without = optimize(data, Options(cascade=False, verify=False))
    assert any(use.rule.startswith("cascade") for use in result.report.rewrites)
    assert result.report.after.required_for_target < without.report.after.required_for_target
    assert all(verdict.equal for verdict in result.report.equivalence.values())
    written = [tensor for graph in read_model(result.model).graphs for tensor in graph.tensors]
    images = [each for each in written if len(each.shape) == 4 and not each.is_constant]
    # Helium computes some rows of integers wrongly, which keeps them columns; floats are written as rows.
    assert any(each.shape[1] > 1 == each.shape[2] for each in images) == (dtype is I8)
    assert any(each.shape[2] > 1 == each.shape[1] for each in images) == (dtype is F32)


def test_what_another_operator_reads_is_reshaped_for_it() -> None:
    s = Sequences(32, 4)
    y = s.conv(s.lie(s.x), 4, 3)
    mean = s.b.tensor("mean", (1, 1, 1, 4))
    axis = s.b.constant("axes", np.asarray([2], np.int32))
    s.b.operator("MEAN", (y, axis), (mean,), "ReducerOptions", keepDims=True)
    laid = along_h(s.b.finish(mean))
    assert [each.name for each in laid.main.operators] == ["EXPAND_DIMS", "CONV_2D", "RESHAPE", "MEAN"]
    assert [each.outputs[0].shape for each in laid.main.operators[1:3]] == [(1, 32, 1, 4), (1, 1, 32, 4)]


def test_what_the_graph_takes_and_returns_stays_as_it_lies() -> None:
    b = ModelBuilder()
    laid = along_h(b.finish(b.conv(b.input("x", (1, 1, 32, 4)), 4, kernel=1)))
    assert [each.name for each in laid.main.operators] == ["RESHAPE", "CONV_2D", "RESHAPE"]
    assert [tensor.shape for tensor in (*laid.main.inputs, *laid.main.outputs)] == [(1, 1, 32, 4)] * 2
    other = ModelBuilder()
    assert not sequences_along_h(other.finish(other.conv(other.input("image", (1, 8, 8, 4)), 4, kernel=3))).uses


def test_shape_signatures_of_what_was_turned_go() -> None:
    s = Sequences(32, 4)
    y = s.conv(s.lie(s.x), 4, 3)
    y.extras = {"shapeSignature": np.asarray((-1, 1, 32, 4), np.int32), "hasRank": True}
    laid = along_h(s.b.finish(s.flat(y)))
    assert [tensor.extras for tensor in laid.main.tensors if tensor.name == y.name] == [{"hasRank": True}]


class Drawn:
    """A network over sequences of two, three and four dimensions, drawn at random."""

    def __init__(self, seed: int, dtype: DType) -> None:
        self.pick, self.dtype = random.Random(seed), dtype
        self.s = Sequences(self.pick.randint(6, 12), self.pick.randint(1, 3), dtype)
        self.b = self.s.b

    def grow(self, layers: int) -> Model:
        """A chain of layers; at times the last one is read by an operator that does not turn."""
        made = [self.s.x]
        for _ in range(layers):
            x = made[-1] if self.pick.random() < 0.8 else self.pick.choice(made)
            if x.shape[-2] > 3:
                made.append(self.layer(x))
        y = self.s.conv(self.reshape(made[-1], 4), 2, 3)
        return self.b.finish(self.mean(y) if self.pick.random() < 0.5 else y, *made[1:2])

    def layer(self, x: Tensor) -> Tensor:
        kinds = (self.conv, self.pad, self.add, self.relu, self.concat, self.dense, self.mean, self.reshape)
        return self.pick.choice(kinds)(x)

    def make(self, name: str, inputs: Sequence[Tensor], shape: Sequence[int], kind: str = "", **fields: Any) -> Tensor:
        y = self.b.tensor(f"{name}{len(self.b.graph.tensors)}", tuple(shape), self.dtype)
        self.b.operator(name, inputs, (y,), kind or None, **fields)
        return y

    def reshape(self, x: Tensor, rank: int = 0) -> Tensor:
        rank = rank or self.pick.choice((2, 3, 4))
        shape = (1,) * (rank - 2) + x.shape[-2:]
        said = self.b.constant(f"shape{len(self.b.graph.tensors)}", np.asarray(shape, np.int32))
        return x if shape == x.shape else self.make("RESHAPE", (x, said), shape, "ReshapeOptions", newShape=shape)

    def conv(self, x: Tensor) -> Tensor:
        return self.s.conv(self.reshape(x, 4), self.pick.randint(1, 4), 3, self.pick.choice((1, 2)))

    def pad(self, x: Tensor) -> Tensor:
        amounts = np.zeros((len(x.shape), 2), np.int32)
        amounts[-2] = self.pick.randint(0, 3), self.pick.randint(0, 2)
        amounts[-1] = self.pick.choice(((0, 0), (1, 0)))
        said = self.b.constant(f"paddings{len(self.b.graph.tensors)}", amounts)
        return self.make("PAD", (x, said), np.asarray(x.shape) + amounts.sum(axis=1), "PadOptions")

    def add(self, x: Tensor) -> Tensor:
        shape = self.pick.choice((x.shape[-1:], (1,) * (len(x.shape) - 1) + x.shape[-1:], x.shape))
        if shape == x.shape:
            return self.make("ADD", (x, x), shape, "AddOptions")
        values = np.ones(shape, np.float32 if self.dtype is F32 else np.int8)
        scale = None if self.dtype is F32 else per_tensor(0.05, 0)
        return self.make(
            "ADD", (x, self.b.constant(f"c{len(self.b.graph.tensors)}", values, scale)), x.shape, "AddOptions"
        )

    def relu(self, x: Tensor) -> Tensor:
        return self.make("RELU", (x,), x.shape)

    def concat(self, x: Tensor) -> Tensor:
        axis = self.pick.choice((-1, len(x.shape) - 1, len(x.shape) - 2))
        shape = list(x.shape)
        shape[axis] *= 2
        return self.make("CONCATENATION", (x, x), shape, "ConcatenationOptions", axis=axis)

    def dense(self, x: Tensor) -> Tensor:
        count = self.pick.randint(1, 4)
        values = np.ones((count, x.shape[-1]), np.float32 if self.dtype is F32 else np.int8)
        scale = None if self.dtype is F32 else per_tensor(0.05, 0)
        weights = self.b.constant(f"w{len(self.b.graph.tensors)}", values, scale)
        options = {"keepNumDims": len(x.shape) > 2 or self.pick.random() < 0.5}
        inputs = (x, weights, None)
        return self.make("FULLY_CONNECTED", inputs, (*x.shape[:-1], count), "FullyConnectedOptions", **options)  # type: ignore[arg-type]

    def mean(self, x: Tensor) -> Tensor:
        """Over the channels, which turns; or over the sequence, which does not, and ends it."""
        rank = len(x.shape)
        axis = self.pick.choice((-1, rank - 1))
        said = self.b.constant(f"axes{len(self.b.graph.tensors)}", np.asarray([axis], np.int32))
        mean = self.make("MEAN", (x, said), (*x.shape[:-1], 1), "ReducerOptions", keepDims=True)
        return self.make("SUB", (x, mean), x.shape, "SubOptions")


@examples(60)
@given(seed=st.integers(0, 10**6), dtype=st.sampled_from((I8, F32)), layers=st.integers(1, 7))
def test_any_sequence_along_h_computes_the_same(seed: int, dtype: DType, layers: int) -> None:
    model = Drawn(seed, dtype).grow(layers)
    laid = along_h(model)
    assert_equal(model, laid)
    columns = copy_model(laid)
    if lay_in_one_row(laid).uses:
        check_model(laid)
        assert_equal(model, laid)
        assert not any(len(t.shape) == 4 and t.shape[1] > t.shape[2] == 1 for t in laid.main.tensors)
        # A RESHAPE between both forms is gone, so that it is priced in the columns alone.
        for prices in PROFILES["cmsis-nn-dsp"].prices, PROFILES["cmsis-nn-mve"].prices, PROFILES["reference"].prices:
            assert windows_work(columns, replace(prices, columns_as_rows=True)) == windows_work(laid, prices)


def windows_work(model: Model, prices: Prices) -> int:
    kinds = (*CONVOLUTIONS, "AVERAGE_POOL_2D", "MAX_POOL_2D")
    return sum(operator_work(each, prices) for each in model.main.operators if each.name in kinds)


@pytest.mark.slow
def test_a_sequence_in_stripes_is_written_as_rows() -> None:
    """CMSIS-NN takes 1.5 times the instructions for a filter of 40 rows: no stripe kept the limit on run time."""
    s = Sequences(1024, 1)
    y = s.conv(s.conv(s.lie(s.x), 16, 40), 16, 3)
    data = write_model(s.b.finish(s.b.dense(s.b.reshape(s.conv(y, 1, 1), (1, 1024)), 4)))
    result = optimize(data, Options(target="cortex-m7"))
    assert result.report.proofs["result"].status == "proved"
    assert all(verdict.equal for verdict in result.report.equivalence.values())
    written = [tensor for graph in read_model(result.model).graphs for tensor in graph.tensors]
    assert any(each.shape[1] == 1 < each.shape[2] for each in written if len(each.shape) == 4)
    assert not any(each.shape[1] > each.shape[2] == 1 for each in written if len(each.shape) == 4)
    assert any(use.rule.startswith("cascade") for use in result.report.rewrites)


def test_a_model_along_h_needs_less_without_stripes_and_says_so() -> None:
    """Two convolutions with a sum in three dimensions between: reshapes go, and stripes are not worth their tail."""
    s = Sequences(12, 4)
    y = s.flat(s.conv(s.lie(s.x), 4, 3))
    model = s.b.finish(s.flat(s.conv(s.lie(s.b.add(y, y)), 4, 3)))
    options = replace(OPTIONS, kernels="reference")  # CMSIS-NN takes scratch for a filter of k x 1
    assert "sequences_along_h" in [each.rule for each in optimize(write_model(model), options).report.rewrites]
