"""Long causal regions as one loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scripts.makers.mechanisms import halo_alone
from tests.cascade.spaces import figures_of, space_of
from tests.cascade.test_lower import assert_equal
from tests.model_builder import ModelBuilder, per_channel
from tflite_memopt import Options
from tflite_memopt.kernels.prices import REFERENCE_PRICES
from tflite_memopt.memory.arrange import Cost, cost_of
from tflite_memopt.model.analysis.macs import model_macs
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.options import SearchOptions
from tflite_memopt.search.cascade import in_order, space
from tflite_memopt.search.cascade.search import cascade
from tflite_memopt.search.cascade.space import LONGEST, Modes, modes_of
from tflite_memopt.search.cascade.tiling import Tiling, apply_tilings

LEVELS, LENGTH, CHANNELS = 12, 64, 8
OPTIONS = Options(samples=3, max_slowdown=1.0)
PROFILE = replace(OPTIONS.profile, prices=REFERENCE_PRICES, libraries=())


def causal(b: ModelBuilder, x: Tensor, level: int, after: int = 0) -> Tensor:
    """A convolution of two taps ``1 << level % 4`` apart, padded above; with ``after``, also below, and three taps."""
    taps, dilation = 2 + (after > 0), 1 << level % 4
    above = (taps - 1) * dilation - after
    padded = b.tensor(f"padded{level}", (1, LENGTH + above + after, 1, CHANNELS), x.dtype)
    amounts = b.constant(f"amounts{level}", np.asarray([[0, 0], [above, after], [0, 0], [0, 0]], np.int32))
    b.operator("PAD", (x, amounts), (padded,), "PadOptions")
    random, shape = np.random.default_rng(level), (CHANNELS, taps, 1, CHANNELS)
    if x.dtype is DType.FLOAT32:
        filters = b.constant(f"w{level}", random.uniform(-0.2, 0.2, shape).astype(np.float32))
        bias = b.constant(f"b{level}", np.zeros(CHANNELS, np.float32))
    else:
        scales = random.uniform(0.002, 0.01, CHANNELS).astype(np.float32)
        filters = b.constant(f"w{level}", random.integers(-127, 128, shape).astype(np.int8), per_channel(scales, 0))
        bias = b.constant(f"b{level}", np.zeros(CHANNELS, np.int32), per_channel(scales * np.float32(0.05), 0))
    y = b.tensor(f"y{level}", (1, LENGTH, 1, CHANNELS), x.dtype)
    fields = {"padding": VALID, "strideH": 1, "strideW": 1, "dilationHFactor": dilation, "dilationWFactor": 1}
    b.operator("CONV_2D", (padded, filters, bias), (y,), "Conv2DOptions", **fields)
    return y


def network(dtype: DType = DType.INT8, levels: int = LEVELS, after: int = 0) -> Model:
    """Residual causal convolutions, one after the other: three operators a level."""
    b = ModelBuilder()
    x = b.input("x", (1, LENGTH, 1, CHANNELS), dtype)
    for level in range(levels):
        y, z = causal(b, x, level, after if level == levels // 2 else 0), b.tensor(f"z{level}", x.shape, dtype)
        b.operator("ADD", (x, y), (z,), "AddOptions")
        x = z
    return b.finish(x)


def cost(model: Model) -> Cost:
    return cost_of(model, OPTIONS.profile, OPTIONS.search)


def loops_alone(options: SearchOptions) -> Modes:
    return replace(modes_of(options), unrolled=(), phases=False)


def long_ones(model: Model, options: Options) -> list[Tiling]:
    """The tilings that are longer than others may be."""
    found = figures_of(space_of(model, PROFILE, loops_alone(options.search), None, options))
    return [tiling for tiling in found if tiling.end - tiling.first > LONGEST]


@pytest.mark.slow
def test_it_computes_the_same_and_needs_less_head() -> None:
    model = network()
    assert len(model.main.operators) > LONGEST
    tiling = min(long_ones(model, OPTIONS))
    assert (tiling.first, tiling.end) == (0, len(model.main.operators))
    made = apply_tilings(copy_model(model), [tiling])
    assert cost(made).head < cost(model).head
    assert model_macs(made) == model_macs(model)
    assert "PAD" not in {operator.name for graph in made.graphs for operator in graph.operators}
    assert_equal(model, made)


def test_the_search_takes_it_where_it_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_order, "modes_of", loops_alone)
    monkeypatch.setattr(space, "LONGEST", 5)
    options = replace(OPTIONS, objective="head")
    found = cascade(network(levels=2), options.profile, options.search, lambda _: None)
    (use,) = found.uses
    assert use.rule.startswith("cascade in a masked loop")
    assert len(found.model.graphs) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options"),
    [
        (network(after=1), OPTIONS),  # one convolution sees a row ahead
        (network(), replace(OPTIONS, loops=False)),
    ],
)
def test_where_there_is_none(model: Model, options: Options) -> None:
    assert long_ones(model, options) == []


@pytest.mark.slow
def test_stripes_that_compute_rows_twice_have_none() -> None:
    with halo_alone("recompute"):
        assert long_ones(network(), OPTIONS) == []
