"""Concatenation + convolution: one convolution for each part, and their sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.dump import dump_model
from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.partial_patterns import Spec, build, specs
from tests.tflm import run_models
from tflite_memopt.evidence.equivalence.adapter import Sample
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import EXACTNESS
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.editor import NO_ACTIVATION, RELU
from tflite_memopt.model.ir.model import DType, Model, Operator, OperatorOptions, Quantization, Tensor
from tflite_memopt.model.ir.tensors import per_tensor, values
from tflite_memopt.search.rewrite.engine import Driver, match_at
from tflite_memopt.search.rewrite.partial import PARTIAL_CONVOLUTION, Output

RULES = (PARTIAL_CONVOLUTION,)
GOLDEN = Path(__file__).with_name("golden_partial_convolution.txt")
RUNTIMES = ("litert", "tflm")
ARENA = 64 << 20
Arrays = dict[str, npt.NDArray[Any]]
Draw = Callable[[Model, int], list[Sample]]
# No shrinking: each step of it would start interpreters, and a failure names its pattern among the many of an example.
quickly = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)

FLOAT_ERROR = 1e-4
"""The largest error of a float32 output, as a share of the largest magnitude in that output.

Two orders of n products differ by at most 2 n u sum|w x|, u = 2**-24 (Higham, Accuracy and Stability of Numerical
Algorithms, 3.1). Roundings are as often up as down, so that sqrt(n) takes the place of n: about 4e-6 of the largest
output for n = 4608 (3x3 windows, 512 channels). This leaves room for the sum of 25 such layers. A bound relative to
each single value would be none: sums that cancel have no correct digit in either order.
"""


def rewritten(model: Model) -> tuple[Model, Driver]:
    copied = copy_model(model)
    driver = Driver(copied, EXACTNESS)
    driver.apply_everywhere(RULES)
    return copied, driver


def refusal(model: Model) -> str:
    """Why the only match was left alone."""
    after, driver = rewritten(model)
    assert not driver.applied
    assert dump_model(after) == dump_model(model)
    (refused,) = driver.refused.values()
    return refused.reason


def named(model: Model, name: str) -> Tensor:
    return next(tensor for tensor in model.main.tensors if tensor.name == name)


def writer_of(model: Model, name: str) -> Operator:
    found = named(model, name).producer
    assert found is not None
    return found


def noise(model: Model, samples: int) -> list[Sample]:
    """Inputs that use the whole range evenly, as the scales of sums assume."""
    rng = np.random.default_rng(1)
    return [[rng.integers(-128, 128, x.shape).astype(np.int8) for x in model.main.inputs] for _ in range(samples)]


def run(runtime: str, samples: int, draw: Draw | None = None, **models: Model) -> dict[str, Arrays]:
    """Outputs of several models with the same inputs, as signed numbers wide enough to subtract."""
    first = next(iter(models.values()))
    inputs = draw(first, samples) if draw is not None else seeded_inputs(first, samples, seed=1)
    runs = run_models(runtime, {label: write_model(model) for label, model in models.items()}, inputs, ARENA)
    for found in runs.values():
        assert found.ran, found.error or found.missing
    return {
        label: {key: array.astype(np.float64) for key, array in found.arrays.items()} for label, found in runs.items()
    }


class TestStructure:
    def test_the_golden_graph(self) -> None:
        after, driver = rewritten(build(Spec(depths=(3, 5, 2), activation=RELU)))
        assert dump_model(after) == GOLDEN.read_text()
        assert [(each.rule, each.operator, each.exactness) for each in driver.applied] == [
            ("partial_convolution", "p0/y", "approximates")
        ]

    def test_float_only_reassociates(self) -> None:
        _, driver = rewritten(build(Spec(dtype=DType.FLOAT32)))
        assert [each.exactness for each in driver.applied] == ["reassociates"]

    def test_integers_stay_unless_they_may_be_approximated(self) -> None:
        driver = Driver(build(Spec()), ("exact", "reassociates"))
        driver.apply_everywhere(RULES)
        assert not driver.applied

    def test_weights_are_cut_and_keep_the_scales_of_the_output_channels(self) -> None:
        model = build(Spec(depths=(3, 5), kernel=(2, 1)))
        whole = writer_of(model, "p0/y").inputs[1]
        assert whole is not None
        assert whole.quantization is not None
        whole.quantization = replace(whole.quantization, extras={"min": np.zeros(4), "details": None})
        after, _ = rewritten(model)
        cuts = [named(after, f"p0/weights/part{number}") for number in range(2)]
        arrays = [values(cut) for cut in cuts]
        assert np.array_equal(np.concatenate(arrays, axis=3), values(whole))  # type: ignore[arg-type]
        for cut in cuts:
            assert cut.quantization is not None
            assert cut.quantization.scale is whole.quantization.scale
            assert cut.quantization.extras == {"min": None, "details": None}

    def test_the_bias_is_added_once(self) -> None:
        after, _ = rewritten(build(Spec(depths=(3, 5, 1))))
        first, *others = (writer_of(after, f"p0/y/part{number}").inputs[2] for number in range(3))
        assert first is named(after, "p0/bias")
        assert others == [named(after, "p0/bias/none")] * 2
        zeros = values(others[0])  # type: ignore[arg-type]
        assert zeros is not None
        assert not zeros.any()

    def test_no_bias_stays_no_input(self) -> None:
        after, _ = rewritten(build(Spec(bias=None)))
        assert [len(writer_of(after, f"p0/y/part{number}").inputs) for number in range(2)] == [2, 2]

    def test_a_missing_bias_of_a_dense_layer_stays_missing(self) -> None:
        after, _ = rewritten(build(Spec(kind="FULLY_CONNECTED", batch=2, bias=None)))
        assert [writer_of(after, f"p0/y/part{number}").inputs[2] for number in range(2)] == [None, None]

    def test_int16_sums_have_no_zero_point_and_take_the_general_kernel(self) -> None:
        after, _ = rewritten(build(Spec(dtype=DType.INT16, depths=(3, 5, 2), bias="int64")))
        for name in ("p0/y/part0", "p0/y/sum1", "p0/y"):
            quantization = named(after, name).quantization
            assert quantization is not None
            assert quantization.zero_point.tolist() == [0]
        assert [writer_of(after, name).option("potScaleInt16") for name in ("p0/y/sum1", "p0/y")] == [False, False]

    def test_a_concatenation_that_is_also_returned_stays(self) -> None:
        model = build(Spec())
        model.main.outputs = (*model.main.outputs, named(model, "p0/joined"))
        after, driver = rewritten(model)
        assert len(driver.applied) == 1
        assert "CONCATENATION" in [operator.name for operator in after.main.operators]

    def test_each_reader_is_a_match_of_its_own(self) -> None:
        b = ModelBuilder()
        x = b.input("x", (1, 4, 4, 3))
        joined = b.concat((x, b.conv(x, 2, seed=1)))
        model = b.finish(b.conv(joined, 3, seed=2), b.conv(joined, 2, kernel=3, seed=3))
        after, driver = rewritten(model)
        assert [each.operator for each in driver.applied] == ["conv2", "conv3"]
        assert "CONCATENATION" not in [operator.name for operator in after.main.operators]

    def test_a_nested_concatenation_is_taken_apart_from_below(self) -> None:
        model = build(Spec(depths=(3, 5, 2), nested=True))
        graph, driver = model.main, Driver(model, EXACTNESS)
        for name in ("p0/joined", "p0/inner"):
            driver.apply_below(RULES, graph, writer_of(model, name))
        assert [operator.name for operator in graph.operators].count("CONV_2D") == 4
        assert [each.operator for each in driver.applied] == ["p0/y", "p0/y/part0"]
        assert "CONCATENATION" not in [operator.name for operator in graph.operators]


def conv(model: Model) -> Operator:
    return writer_of(model, "p0/y")


def concatenation(model: Model) -> Operator:
    return writer_of(model, "p0/joined")


def set_option(operator: Operator, **fields: Any) -> None:
    assert operator.options is not None
    operator.options = OperatorOptions(operator.options.kind, {**operator.options.fields, **fields})


def compute_weights(model: Model) -> None:
    _computed(model, conv(model), 1)


def compute_bias(model: Model) -> None:
    _computed(model, conv(model), 2)


def _computed(model: Model, operator: Operator, slot: int) -> None:
    old = operator.inputs[slot]
    assert old is not None
    model.main.set_input(operator, slot, model.main.add_tensor(replace(old, name="z", buffer=model.buffers[0])))


def constant_part(model: Model) -> None:
    part = model.main.inputs[0]
    model.main.inputs = model.main.inputs[1:]
    part.buffer = named(model, "p0/weights").buffer


def scale_of_weights(**fields: Any) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        weights = named(model, "p0/weights")
        assert weights.quantization is not None
        weights.quantization = replace(weights.quantization, **fields)

    return change


def one_input(model: Model) -> None:
    joined, only = named(model, "p0/joined"), model.main.inputs[0]
    model.main.remove_operator(concatenation(model))
    model.main.add_operator(
        Operator(model.opcodes[0], (only,), (joined,), OperatorOptions("ConcatenationOptions", {})), 0
    )


REFUSALS: dict[str, tuple[Callable[[Model], None], str]] = {
    "one input": (one_input, "fewer than two inputs"),
    "fused": (lambda m: set_option(concatenation(m), fusedActivationFunction=1), "has a fused activation"),
    "axis": (lambda m: set_option(concatenation(m), axis=2), "not along the channels"),
    "depths": (lambda m: setattr(named(m, "p0/joined"), "shape", (1, 3, 4, 9)), "do not make up its output"),
    "constant part": (constant_part, "'p0/x0' is a constant"),
    "empty part": (lambda m: setattr(m.main.inputs[0], "shape", (1, 3, 4, 0)), "do not make up"),
    "requantized part": (
        lambda m: setattr(m.main.inputs[0], "quantization", per_tensor(9.0, 0)),
        "another type or quant",
    ),
    "no options": (lambda m: setattr(conv(m), "options", None), "lacks an input or its options"),
    "types": (lambda m: setattr(named(m, "p0/weights"), "dtype", DType.INT4), "its types are int8, int4"),
    "activation": (lambda m: set_option(conv(m), fusedActivationFunction=4), "activation is one that ADD"),
    "shuffled": (lambda m: set_option(conv(m), weightsFormat=1), "shuffled"),
    "computed weights": (compute_weights, "not a dense constant"),
    "sparse": (lambda m: setattr(named(m, "p0/weights"), "extras", {"sparsity": object()}), "not a dense constant"),
    "grouped": (lambda m: setattr(named(m, "p0/weights"), "shape", (8, 1, 1, 4)), "it is grouped"),
    "computed bias": (compute_bias, "its bias is not one constant"),
    "by axis": (
        lambda m: setattr(m.main.outputs[0], "quantization", per_channel(np.ones(4, np.float32), 3)),
        "no single scale",
    ),
    "unquantized": (lambda m: setattr(named(m, "p0/weights"), "quantization", None), "not quantized"),
    "custom": (scale_of_weights(extras={"details": object()}), "in a custom way"),
    "other axis": (scale_of_weights(axis=3), "by tensor or by output channel"),
    "zero points": (scale_of_weights(zero_point=np.ones(4, np.int64)), "have zero points"),
    "zero scale": (scale_of_weights(scale=np.zeros(4, np.float32)), "scales of zero"),
}


class TestRefusals:
    @pytest.mark.parametrize(("change", "reason"), REFUSALS.values(), ids=REFUSALS)
    def test_the_reason(self, change: Callable[[Model], None], reason: str) -> None:
        model = build(Spec())
        change(model)
        match = match_at(PARTIAL_CONVOLUTION.pattern, model.main, conv(model))
        assert match is not None
        found = PARTIAL_CONVOLUTION.check(match)
        assert isinstance(found, str)
        assert reason in found

    @pytest.mark.parametrize("depth", [16, 48])
    def test_a_concatenation_of_views_is_free(self, depth: int) -> None:
        spec = Spec(kind="FULLY_CONNECTED", depths=(depth, 4))
        assert "free" in refusal(build(spec))
        assert rewritten(build(replace(spec, batch=2)))[1].applied

    def test_parts_that_no_view_can_start_at_are_not_free(self) -> None:
        assert rewritten(build(Spec(kind="FULLY_CONNECTED", depths=(15, 17))))[1].applied

    def test_one_tensor_cannot_be_a_view_twice(self) -> None:
        assert rewritten(build(Spec(kind="FULLY_CONNECTED", depths=(16, 16), twice=True)))[1].applied


def patterns(dtype: DType) -> st.SearchStrategy[list[Spec]]:
    return st.lists(specs(dtype), min_size=34, max_size=34)


class TestNumbers:
    @pytest.mark.slow
    @quickly
    @given(patterns(DType.FLOAT32))
    def test_floats_are_equal_up_to_the_stated_error(self, drawn: list[Spec]) -> None:
        before = build(*drawn)
        after, _ = rewritten(before)
        for runtime in RUNTIMES:
            outputs = run(runtime, 2, before=before, after=after)
            for key, expected in outputs["before"].items():
                gap = np.abs(expected - outputs["after"][key]).max()
                assert gap <= FLOAT_ERROR / 10 * np.abs(expected).max(), drawn[number_of(key)]

    @pytest.mark.slow
    @quickly
    @given(patterns(DType.INT8))
    def test_int8_differs_by_no_more_than_the_roundings(self, drawn: list[Spec]) -> None:
        self._check_roundings(drawn, 0.5)

    @pytest.mark.slow
    @quickly
    @given(patterns(DType.INT16))
    def test_int16_differs_by_no_more_than_the_roundings(self, drawn: list[Spec]) -> None:
        # With accumulators of 64 bits, multipliers have 15 bits: up to half a step more for each rounding.
        self._check_roundings(drawn, 1.0)

    @staticmethod
    def _check_roundings(drawn: list[Spec], step: float) -> None:
        before = build(*drawn)
        after, _ = rewritten(before)
        bounds = [2 * step + step * inner_scales(after, f"p{number}/y") for number in range(len(drawn))]
        for runtime in RUNTIMES:
            outputs = run(runtime, 2, before=before, after=after)
            for key, expected in outputs["before"].items():
                gap = np.abs(expected - outputs["after"][key]).max()
                assert gap <= bounds[number_of(key)], drawn[number_of(key)]

    @pytest.mark.parametrize(("activation", "factor"), [(NO_ACTIVATION, 0.5), (RELU, 100)])
    def test_the_scales_against_the_output_scale(
        self, activation: int, factor: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Behind a RELU the output's scale has no room for negative partial sums. Without one it is the better by a
        # little on even noise (0.34 against 0.44 steps squared): ours must have room for sums that cancel out.
        drawn = [
            Spec(depths=(12, 7, 9), zero_point=zero, activation=activation, seed=seed)
            for seed in range(5)
            for zero in (-128, 0)
        ]
        before = build(*drawn)
        ours, _ = rewritten(before)
        monkeypatch.setattr(Output, "quantization", lambda self, _: output_scale(self))
        outputs = run("litert", 4, noise, before=before, ours=ours, naive=rewritten(before)[0])
        error = {label: mean_square(outputs, label) for label in ("ours", "naive")}
        assert error["ours"] < 1.0
        assert error["naive"] > factor * error["ours"]

    def test_two_samples_of_a_batch_are_both_computed(self) -> None:
        before = build(Spec(batch=2, dtype=DType.FLOAT32, kernel=(2, 2)))
        outputs = run("litert", 1, before=before, after=rewritten(before)[0])
        assert outputs["after"]["s0_o0"].shape[0] == 2
        assert np.allclose(outputs["before"]["s0_o0"], outputs["after"]["s0_o0"], atol=1e-5)


def output_scale(output: Output) -> Quantization:
    return per_tensor(output.values.scale, output.values.zero_point)


def mean_square(outputs: dict[str, Arrays], label: str) -> float:
    gaps = [(outputs["before"][key] - array).ravel() for key, array in outputs[label].items()]
    return float((np.concatenate(gaps) ** 2).mean())


def number_of(key: str) -> int:
    """The pattern that an output belongs to."""
    return int(key.split("_o")[1])


def inner_scales(model: Model, output: str) -> float:
    """The scales of all tensors that are rounded on the way to an output, in scales of the output."""
    inner = [tensor.quantization for tensor in model.main.tensors if tensor.name.startswith(f"{output}/")]
    whole = named(model, output).quantization
    assert whole is not None
    return sum(float(each.scale[0] / whole.scale[0]) for each in inner if each is not None)
