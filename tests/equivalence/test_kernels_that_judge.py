"""LiteRT's kernels: the reference ones judge where the optimized ones agree; where not, the optimized ones judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.models import dense_model, mobile_chain
from tests.tflm import needs_wheel
from tflite_memopt import Options, optimize
from tflite_memopt.evidence.equivalence.adapter import OPTIMIZED_KERNELS, REFERENCE, RunJob
from tflite_memopt.evidence.equivalence.baseline import Baseline, measure_baseline
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.evidence.equivalence.subject import FailedVerificationError, Subject
from tflite_memopt.evidence.equivalence.verification import verify_result
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.run.parts.verifying import boundaries_of

LITERT = Options(runtimes=("litert",))
SIDE = 6


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with Interpreters((), ProcessLimits()) as running:
        yield running


def summed(b: ModelBuilder, x: Tensor, axis: int = 1) -> Tensor:
    """SUM of quantized integers along one axis of [1, SIDE, SIDE, 4]."""
    y = b.tensor("sum", (1, SIDE, 4), x.dtype, scale=0.3)
    b.operator("SUM", (x, b.constant("axis", np.asarray([axis], np.int32))), (y,), "ReducerOptions")
    return y


def sum_model(dtype: DType, axis: int = 1) -> Model:
    """SUM is operator 1."""
    b = ModelBuilder()
    x = b.input("x", (1, SIDE, SIDE, 4), dtype)
    return b.finish(summed(b, b.add(x, x), axis))


def looked_at(
    model: Model, interpreters: Interpreters, options: Options = LITERT, named: Model | None = None
) -> Baseline:
    data = write_model(model)
    return measure_baseline(data, read_model(data), options, interpreters, named=named)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_a_wrong_reference_kernel_does_not_judge_and_is_named(dtype: DType, interpreters: Interpreters) -> None:
    found = looked_at(sum_model(dtype), interpreters)
    litert = found.runs["litert"]
    assert litert.kernels == OPTIMIZED_KERNELS
    assert litert.inside is not None
    assert litert.inside.most is not None
    assert (litert.inside.most.number, litert.inside.most.operator.name) == (1, "SUM")
    assert (litert.inside.most.gap.max_lsb_diff or 0) > 2
    assert len(found.findings) == 1
    assert litert.reason == found.findings[0]
    assert litert.run is not None
    added = litert.run.tensors[found.model.main.tensors.index(found.model.main.operators[0].outputs[0])]
    info = np.iinfo(dtype.label)
    for given, got in zip(added, litert.run.outputs[0], strict=True):
        exact = (given.astype(np.float64).sum(axis=1) * (0.05 / 0.3)).clip(info.min, info.max)
        assert np.abs(exact - got).max() <= 1


@needs_wheel
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_tflm_agrees_with_the_kernels_that_judge(dtype: DType, interpreters: Interpreters) -> None:
    between = looked_at(sum_model(dtype), interpreters, Options()).between
    assert between is None or (between.gap.max_lsb_diff or 0) <= 1


@pytest.mark.parametrize("make", [mobile_chain, dense_model])
def test_where_both_agree_the_reference_kernels_judge(make: Callable[[], Model], interpreters: Interpreters) -> None:
    found = looked_at(make(), interpreters)
    assert (found.runs["litert"].kernels, found.runs["litert"].inside) == (REFERENCE, None)
    assert found.findings == ()


def rounded_at_the_end(is_float: bool) -> Model:
    """A dense layer that the two round otherwise, by a step, which is above the tolerance of floats."""
    b = ModelBuilder()
    y = b.dense(b.input("x", (1, 64)), 512, seed=1)
    if is_float:
        end = b.tensor("y", (1, 512), DType.FLOAT32)
        b.operator("DEQUANTIZE", (y,), (end,))
        y = end
    return b.finish(y)


@pytest.mark.parametrize("is_float", [False, True])
def test_a_step_at_an_output_is_a_rounding_also_of_floats_made_of_integers(
    is_float: bool, interpreters: Interpreters
) -> None:
    model = rounded_at_the_end(is_float)
    found = looked_at(model, interpreters)
    litert = found.runs["litert"].run
    assert litert is not None
    job = RunJob(write_model(model), found.samples, 0, kernels=OPTIMIZED_KERNELS)
    other = interpreters["litert"].run(job).outputs[0]
    assert any(not np.array_equal(a, b) for a, b in zip(litert.outputs[0], other, strict=True))
    assert found.runs["litert"].kernels == REFERENCE


def test_operators_are_numbered_as_in_the_users_file(interpreters: Interpreters) -> None:
    def number_in(named: Model) -> int | None:
        inside = looked_at(sum_model(DType.INT8), interpreters, named=named).runs["litert"].inside
        assert inside is not None
        assert inside.most is not None
        return inside.most.number

    b = ModelBuilder()
    x = b.reshape(b.input("x", (1, SIDE * SIDE, 1, 4)), (1, SIDE, SIDE, 4))
    longer = b.finish(summed(b, b.add(x, x)))
    assert number_in(longer) == 2
    longer.main.outputs[0].name = "another"
    assert number_in(longer) is None


def test_a_result_with_another_sum_is_refused() -> None:
    original, other = (write_model(sum_model(DType.INT8, axis)) for axis in (1, 2))
    assert verify_result(Subject(original, original), LITERT, quiet).verdicts["litert"].kernels == OPTIMIZED_KERNELS
    with pytest.raises(FailedVerificationError, match="litert"):
        verify_result(Subject(original, other), LITERT, quiet)


def beside_a_sum(end: Callable[[ModelBuilder], Tensor]) -> bytes:
    """A model that the optimized kernels judge, for its SUM, and another output."""
    b = ModelBuilder()
    x = b.input("x", (1, SIDE, SIDE, 4))
    return write_model(b.finish(summed(b, b.add(x, x)), end(b)))


def pixel(b: ModelBuilder, x: Tensor) -> Tensor:
    y = b.tensor(f"{x.name}/pixel", (1, 1, 1, x.shape[3]), DType.FLOAT32)
    sizes = [b.constant(f"{y.name}{at}", np.asarray(each, np.int32)) for at, each in enumerate(([0] * 4, y.shape))]
    b.operator("SLICE", (x, *sizes), (y,), "SliceOptions")
    return y


def convolved(b: ModelBuilder, x: Tensor, factor: float = 1.0) -> Tensor:
    draw = np.random.default_rng(0)
    filters = (draw.normal(size=(16, 1, 1, 256)) * factor).astype(np.float32)
    y = b.tensor("conv", (*x.shape[:3], 16), DType.FLOAT32)
    constants = b.constant("w", filters), b.constant("b", np.zeros(16, np.float32))
    b.operator("CONV_2D", (x, *constants), (y,), "Conv2DOptions", padding=1, strideH=1, strideW=1)
    return y


def test_float_sums_of_the_optimized_kernels_may_have_another_order() -> None:
    """One pixel is added up otherwise than the pixels of an image: the same to the bit on the reference kernels."""

    def image(b: ModelBuilder) -> Tensor:
        return b.input("image", (1, 5, 5, 256), DType.FLOAT32)

    whole = beside_a_sum(lambda b: pixel(b, convolved(b, image(b))))
    single = beside_a_sum(lambda b: convolved(b, pixel(b, image(b))))
    found = verify_result(Subject(whole, single), LITERT, quiet).verdicts["litert"]
    assert found.max_abs_diff > 0, "the kernels add both in one order: the tolerance is not needed any more"
    assert (found.equal, found.exactness, found.tolerance is None) == (True, "reassociates", False)
    assert verify_result(Subject(whole, whole), LITERT, quiet).verdicts["litert"].exactness == "exact"
    wrong = beside_a_sum(lambda b: convolved(b, pixel(b, image(b)), 1.01))
    with pytest.raises(FailedVerificationError, match="litert"):
        verify_result(Subject(whole, wrong), LITERT, quiet)


def test_an_integer_that_is_written_as_a_float_is_still_exact() -> None:
    """A step of int16 is less than the tolerance of floats."""

    def at_most(limit: int) -> Callable[[ModelBuilder], Tensor]:
        def end(b: ModelBuilder) -> Tensor:
            x, least, y = (
                b.input("z", (1, 4), DType.INT16),
                b.tensor("least", (1, 4), DType.INT16),
                b.tensor("float", (1, 4), DType.FLOAT32),
            )
            top = b.constant("top", np.asarray([limit], np.int16), per_tensor(0.05, 0))
            b.operator("MINIMUM", (x, top), (least,), "MaximumMinimumOptions").opcode.version = 4
            b.operator("DEQUANTIZE", (least,), (y,)).opcode.version = 3
            return y

        return end

    one, other = (beside_a_sum(at_most(limit)) for limit in (30_000, 29_999))
    assert verify_result(Subject(one, one), LITERT, quiet).verdicts["litert"].equal
    with pytest.raises(FailedVerificationError, match="litert"):
        verify_result(Subject(one, other), LITERT, quiet)


def test_what_crosses_a_cut_is_what_the_judge_computes(interpreters: Interpreters) -> None:
    model = sum_model(DType.INT8)
    b = ModelBuilder()
    behind = b.finish(b.reshape(b.input("sum", (1, SIDE, 4), scale=0.3), (1, SIDE * 4)))
    given = boundaries_of(model, [model, behind], LITERT, quiet)[1].samples
    judge = looked_at(model, interpreters).runs["litert"].run
    assert given is not None
    assert judge is not None
    assert [sample[0].tobytes() for sample in given] == [each.tobytes() for each in judge.outputs[0]]


def test_a_baselines_runner_has_its_kernels(interpreters: Interpreters) -> None:
    b = ModelBuilder()
    y = b.tensor("y", (1, 8))
    times = b.constant("times", np.asarray([1, 2], np.int32))
    b.operator("TILE", (b.input("x", (1, 4)), times), (y,), "TileOptions").opcode.version = 3
    found = looked_at(b.finish(y), interpreters, replace(LITERT, samples=2))
    job = RunJob(found.data, found.samples, 0)
    assert not interpreters["litert"].run(job).ran
    assert found.runner("litert", interpreters).run(job).ran


def quiet(_: str) -> None:
    pass


def narrow_bias(said: int) -> Model:
    """A CONV_2D of 16 bits with a bias of 32 bits, whose type the options say, or leave at 0."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 2), DType.INT16, scale=1e-3), b.tensor("y", (1, 4, 4, 3), DType.INT16, scale=1e-3)
    weights = b.constant("w", np.arange(1, 7, dtype=np.int8).reshape(3, 1, 1, 2), per_tensor(0.01, 0))
    bias = b.constant("bias", np.asarray([900, -800, 700], np.int32), per_tensor(1e-5, 0))
    fields = {"padding": 1, "strideH": 1, "strideW": 1, "quantizedBiasType": said}
    b.operator("CONV_2D", (x, weights, bias), (y,), "Conv2DOptions", **fields)
    return b.finish(y)


@needs_wheel
def test_litert_judges_no_bias_that_it_reads_beyond(interpreters: Interpreters) -> None:
    options = Options(samples=4)
    untyped, typed = (looked_at(narrow_bias(said), interpreters, options) for said in (0, 2))
    litert, tflm = untyped.runs["litert"], untyped.runs["tflm"]
    assert litert.run is None
    assert "beyond its end" in (litert.reason or "")
    right, found = typed.runs["litert"].run, tflm.run
    assert right is not None
    assert found is not None
    np.testing.assert_array_equal(np.stack(found.outputs[0]), np.stack(right.outputs[0]))
    data = write_model(narrow_bias(0))
    read = interpreters["litert"].run(RunJob(data, untyped.samples, 0))
    assert not np.array_equal(np.stack(read.outputs[0]), np.stack(right.outputs[0]))
    report = optimize(data, options).report
    assert {name: each.equal for name, each in report.equivalence.items()} == {"litert": None, "tflm": True}
