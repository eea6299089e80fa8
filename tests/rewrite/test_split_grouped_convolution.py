"""Concatenation + grouped convolution: the same bits from one convolution for each part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.dump import dump_model
from tests.model_builder import ModelBuilder, per_channel
from tests.two_models import compare_models
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.editor import NO_ACTIVATION, RELU, RELU6, SAME, VALID
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.channels import SPLIT_GROUPED_CONVOLUTION
from tflite_memopt.search.rewrite.engine import Driver

BIASES = {DType.FLOAT32: np.float32, DType.INT8: np.int32, DType.INT16: np.int64}


@dataclass(frozen=True)
class Spec:
    """A concatenation of parts with these numbers of groups, and the convolution that reads it."""

    dtype: DType = DType.INT8
    groups: tuple[int, ...] = (1, 2)
    depth: int = 2
    filters: int = 3
    kernel: int = 1
    stride: int = 1
    padding: int = SAME
    activation: int = NO_ACTIVATION
    by_channel: bool = True
    seed: int = 0


def build(*drawn: Spec) -> Model:
    b = ModelBuilder()
    return b.finish(*(add_pattern(b, f"p{number}", spec) for number, spec in enumerate(drawn)))


def add_pattern(b: ModelBuilder, name: str, spec: Spec) -> Tensor:
    rng = np.random.default_rng(spec.seed)
    parts = [
        b.input(f"{name}/x{number}", (1, 4, 5, groups * spec.depth), spec.dtype)
        for number, groups in enumerate(spec.groups)
    ]
    joined = b.concat(parts)
    channels = sum(spec.groups) * spec.filters
    weights = rng.integers(-127, 128, (channels, spec.kernel, spec.kernel, spec.depth))
    bias = rng.integers(-900, 900, channels).astype(BIASES[spec.dtype])
    scale = rng.uniform(0.001, 0.003, channels if spec.by_channel else 1).astype(np.float32)
    sizes = [-(-(size - (spec.kernel - 1) * (spec.padding == VALID)) // spec.stride) for size in (4, 5)]
    y = b.tensor(f"{name}/y", (1, *sizes, channels), spec.dtype)
    if spec.dtype is DType.FLOAT32:
        operands = b.constant(f"{name}/w", weights.astype(np.float32)), b.constant(f"{name}/b", bias)
    else:
        filters = b.constant(f"{name}/w", weights.astype(np.int8), per_channel(scale, 0))
        operands = filters, b.constant(f"{name}/b", bias, per_channel(scale * np.float32(0.05), 0))
    fields = {"padding": spec.padding, "strideH": spec.stride, "strideW": spec.stride}
    fields |= {"fusedActivationFunction": spec.activation}
    b.operator("CONV_2D", (joined, *operands), (y,), "Conv2DOptions", **fields)
    return y


def specs() -> st.SearchStrategy[Spec]:
    return st.builds(
        Spec,
        dtype=st.sampled_from(tuple(BIASES)),
        groups=st.lists(st.integers(1, 4), min_size=2, max_size=4).map(tuple),
        depth=st.integers(1, 3),
        filters=st.integers(1, 3),
        kernel=st.integers(1, 3),
        stride=st.integers(1, 2),
        padding=st.sampled_from((SAME, VALID)),
        activation=st.sampled_from((NO_ACTIVATION, RELU, RELU6)),
        by_channel=st.booleans(),
        seed=st.integers(0, 2**16),
    )


def rewritten(model: Model) -> tuple[Model, Driver]:
    copied = copy_model(model)
    driver = Driver(copied)
    driver.apply_everywhere((SPLIT_GROUPED_CONVOLUTION,))
    return copied, driver


@settings(
    max_examples=2,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # shrinking would start interpreters again and again
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(specs(), min_size=40, max_size=40))
def test_the_same_bits(drawn: list[Spec]) -> None:
    before = build(*drawn)
    after, driver = rewritten(before)
    assert len(driver.applied) == len(drawn)
    inputs = seeded_inputs(before, 2, seed=0)
    for runtime in ("litert", "tflm"):
        found = compare_models(runtime, write_model(before), write_model(after), inputs, 16 << 20)
        assert found.equal, found.reason


def test_the_graph_and_the_channels_of_each_part() -> None:
    after, _ = rewritten(build(Spec()))
    lines = dump_model(after).splitlines()
    assert [line.split("=")[1].split("(")[0].strip() for line in lines if " = " in line] == [
        "CONV_2D",
        "CONV_2D",
        "CONCATENATION",
    ]
    for line in ("p0/y/part0: int8[1, 4, 5, 3]", "p0/y/part1: int8[1, 4, 5, 6]", "p0/w/part1: int8[6, 1, 1, 2] const"):
        assert any(line in each for each in lines), line


def named(model: Model, name: str) -> Tensor:
    return next(tensor for tensor in model.main.tensors if tensor.name == name)


def scales_along_other_axis(model: Model) -> None:
    weights = named(model, "p0/w")
    weights.quantization = per_channel(np.ones(2, np.float32), 3)


REFUSALS: dict[str, tuple[Spec, Callable[[Model], None], str]] = {
    "cut groups": (Spec(groups=(1, 1), depth=4), lambda m: _parts(m, 3, 5), "inputs are not whole groups"),
    "odd channels": (Spec(), lambda m: _widen(m, 5), "its channels are not whole groups"),
    "axis": (Spec(), scales_along_other_axis, "quantized in another way"),
    "sparse": (Spec(), lambda m: setattr(named(m, "p0/w"), "extras", {"sparsity": object()}), "no constants"),
}


def _widen(model: Model, depth: int) -> None:
    """Weights of another depth."""
    weights = named(model, "p0/w")
    weights.shape = (*weights.shape[:3], depth)
    weights.buffer = replace(weights.buffer, data=np.zeros(weights.elements, np.uint8))


def _parts(model: Model, *depths: int) -> None:
    for part, depth in zip(model.main.inputs, depths, strict=True):
        part.shape = (*part.shape[:3], depth)


def test_no_match_where_a_filter_sees_all_channels() -> None:
    model = build(Spec(groups=(1, 1)))
    _widen(model, model.main.operators[0].outputs[0].shape[-1])
    _, driver = rewritten(model)
    assert not driver.applied
    assert not driver.refused


@pytest.mark.parametrize(("spec", "change", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_the_reason_to_refuse(spec: Spec, change: Callable[[Model], None], reason: str) -> None:
    model = build(spec)
    change(model)
    _, driver = rewritten(model)
    (refused,) = driver.refused.values()
    assert reason in refused.reason
    assert not driver.applied
