"""Dilated sequences as a loop over phases."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.cascade.test_lower import assert_equal
from tests.memory.loops import assert_plan_proved
from tests.model_builder import ModelBuilder, per_channel
from tflite_memopt import Options
from tflite_memopt.kernels.prices import REFERENCE_PRICES
from tflite_memopt.memory.arrange import Cost, arrange, cost_of
from tflite_memopt.model.analysis.macs import model_macs
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.options import SearchOptions
from tflite_memopt.search.cascade import in_order
from tflite_memopt.search.cascade.in_order import OrderSearch
from tflite_memopt.search.cascade.loop import lower_phases
from tflite_memopt.search.cascade.measure import Measured
from tflite_memopt.search.cascade.region import Region, region_of
from tflite_memopt.search.cascade.search import cascade
from tflite_memopt.search.cascade.space import Modes, modes_of
from tflite_memopt.search.cascade.tiling import PhaseLoop, Tiling, Tilings

OPTIONS = Options(samples=3, objective="head", max_slowdown=1.0)


class Dilated:
    """Residual levels of dilated convolutions over a sequence, drawn at random, between two operators that stay."""

    def __init__(self, seed: int, dtype: DType, phases: int, length: int = 0, levels: int = 2) -> None:
        self.b, self.dtype, self.phases, self.rng = ModelBuilder(), dtype, phases, random.Random(seed)
        self.length, self.channels = length or phases * self.rng.randint(3, 6), self.rng.choice((3, 8))
        x = self.unary("RELU", self.b.input("x", (1, self.length, 1, self.channels), dtype))
        for _ in range(levels):
            x = self.level(x)
        self.model = self.b.finish(self.unary("RELU", x))

    def level(self, x: Tensor) -> Tensor:
        y = self.conv(self.pad(x, 2))
        y = self.conv(y, taps=1) if self.rng.random() < 0.5 else self.affine(y)
        z = self.like(x)
        self.b.operator("ADD", (x, y), (z,), "AddOptions", fusedActivationFunction=self.rng.choice((0, 1)))
        return z

    def pad(self, x: Tensor, above: int) -> Tensor:
        below = self.rng.choice((0, 1))
        many = self.phases * above
        y = self.like(x, self.length + many)
        y.quantization = x.quantization  # kernels copy the values as they are
        amounts = np.asarray([[0, 0], [many - below * self.phases, below * self.phases], [0, 0], [0, 0]], np.int32)
        self.b.operator("PAD", (x, self.b.constant(f"{y.name}/amounts", amounts)), (y,), "PadOptions")
        return y

    def conv(self, x: Tensor, taps: int = 3) -> Tensor:
        y, random_ = self.like(x, self.length), np.random.default_rng(self.rng.getrandbits(30))
        shape = (self.channels, taps, 1, self.channels)
        if self.dtype is DType.FLOAT32:
            filters = self.b.constant(f"{y.name}/w", random_.uniform(-0.3, 0.3, shape).astype(np.float32))
            bias = self.b.constant(f"{y.name}/b", random_.uniform(-1, 1, self.channels).astype(np.float32))
        else:
            scales = random_.uniform(0.002, 0.01, self.channels).astype(np.float32)
            values = random_.integers(-127, 128, shape).astype(np.int8)
            filters = self.b.constant(f"{y.name}/w", values, per_channel(scales, 0))
            kind = np.int32 if self.dtype is DType.INT8 else np.int64
            bias = self.b.constant(f"{y.name}/b", random_.integers(-50, 50, self.channels).astype(kind))
        fields = {"padding": VALID, "strideH": 1, "strideW": 1, "dilationWFactor": 1}
        dilation = self.phases if taps > 1 else 1
        self.b.operator("CONV_2D", (x, filters, bias), (y,), "Conv2DOptions", **fields, dilationHFactor=dilation)
        return y

    def affine(self, x: Tensor) -> Tensor:
        y = self.like(x)
        shape = self.rng.choice(((self.channels,), (1, 1, 1, self.channels)))
        values = np.random.default_rng(self.rng.getrandbits(30)).uniform(-50, 50, shape).astype(self.dtype.label)
        constant = self.b.constant(f"{y.name}/c", values, None if self.dtype is DType.FLOAT32 else x.quantization)
        self.b.operator("MUL", (x, constant), (y,), "MulOptions")
        return y

    def unary(self, name: str, x: Tensor) -> Tensor:
        y = self.like(x)
        self.b.operator(name, (x,), (y,))
        return y

    def like(self, x: Tensor, length: int = 0) -> Tensor:
        scale = round(self.rng.uniform(0.02, 0.1), 3)
        shape = (1, length or x.shape[1], 1, x.shape[3])
        name = f"t{len(self.b.graph.tensors)}"
        if self.dtype is DType.FLOAT32:
            return self.b.tensor(name, shape, self.dtype)
        return self.b.tensor(name, shape, self.dtype, scale=scale)


def in_phases(model: Model, phases: int) -> Model:
    """All operators but the first and the last as a loop."""
    made = copy_model(model)
    region = region_of(made.main, made.main.operators[1:-1])
    assert isinstance(region, Region)
    lower_phases(made, region, phases)
    check_model(made)
    return made


@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32, DType.INT16])
@pytest.mark.parametrize("phases", [2, 3, 8])
def test_the_same_bits(dtype: DType, phases: int) -> None:
    for seed in range(2):
        model = Dilated(seed, dtype, phases).model
        assert_equal(model, in_phases(model, phases))


def cost(model: Model) -> Cost:
    return cost_of(model, OPTIONS.profile, OPTIONS.search)


def phases_alone(options: SearchOptions) -> Modes:
    return replace(modes_of(options), unrolled=(), loops=())


def searched(model: Model, options: Options, known: Cost) -> tuple[OrderSearch, Cost, Tilings]:
    profile = replace(options.profile, prices=REFERENCE_PRICES, libraries=())
    search = OrderSearch(model, profile, options.search, cost(model), Measured(), phases_alone(options.search))
    return search, *search.run(known)


@pytest.mark.parametrize("kernels", ["portable", "reference"])
def test_only_one_column_of_each_inner_tensor_is_alive(kernels: str) -> None:
    options = replace(OPTIONS, kernels=kernels)
    model = Dilated(0, DType.INT8, 8, 64).model
    search, found, chosen = searched(model, options, cost(model))
    made = search.plans.tiled(chosen)
    assert chosen == (Tiling(1, len(model.main.operators) - 1, PhaseLoop(8)),)
    assert model_macs(made) == model_macs(model)
    whole = model.main.inputs[0].nbytes
    placement = arrange(made, options.profile, options.search).placement
    assert_plan_proved(made, placement, kernels)
    assert placement.memory.arena_bytes <= 2 * whole  # the operators around the loop have one input and one output
    assert found.head < cost(model).head


def test_the_stage_takes_it_where_it_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_order, "modes_of", phases_alone)
    model = Dilated(0, DType.INT8, 8, 64).model
    profile = replace(OPTIONS.profile, prices=REFERENCE_PRICES, libraries=())
    (use,) = cascade(model, profile, OPTIONS.search, lambda _: None).uses
    assert use.rule == "cascade in a loop over 8 phases"


def refused(why: str) -> tuple[Model, Options]:
    model = Dilated(0, DType.INT8, 8, 64, levels=1).model
    operators = model.main.operators
    convolution = next(each for each in operators if each.name == "CONV_2D")
    assert convolution.options is not None
    wrong = {"stride": {"strideH": 2}, "dilation": {"dilationHFactor": 7}}.get(why, {})
    convolution.options = replace(convolution.options, fields={**convolution.options.fields, **wrong})
    if why == "returned":
        model.main.outputs = (*model.main.outputs, operators[0].outputs[0])
    return model, replace(OPTIONS, loops=why != "loops", max_slowdown=0.0 if why == "work" else 1.0)


@pytest.mark.parametrize("why", ["stride", "dilation", "returned", "loops", "work"])
def test_where_there_is_none(why: str) -> None:
    model, options = refused(why)
    known = Cost(1 << 30, 1 << 30, 1 << 30, 1 << 30)
    assert searched(model, options, known)[1:] == (known, ())
