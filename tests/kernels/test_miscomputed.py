"""What CMSIS-NN itself computes wrongly with Helium: no stripe and no rewrite leads there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scripts.makers.model_builder import ModelBuilder
from tests.cascade.spaces import figures_of, space_of
from tflite_memopt import Options, optimize, transform
from tflite_memopt.cascade.space import UNROLLED
from tflite_memopt.cascade.tiling import Tiling, Unrolled, apply_tilings
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.change import Changed
from tflite_memopt.ir.editor import SAME, VALID
from tflite_memopt.ir.model import DType, Model, Operator, Tensor
from tflite_memopt.ir.tensors import per_tensor
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.work import WorkLimit

MVE = profile_named("cmsis-nn-mve")


def one_by_n(b: ModelBuilder, x: Tensor, taps: int, stride: int, padding: int = SAME, channels: int = 4) -> Tensor:
    columns = x.shape[2] - (taps - 1 if padding == VALID else 0)
    values = np.random.default_rng(taps).integers(-127, 128, (channels, 1, taps, x.shape[3])).astype(np.int8)
    weights = b.constant(f"{taps}_{len(b.graph.tensors)}/weights", values, per_tensor(0.01, 0))
    bias = b.constant(f"{taps}_{len(b.graph.tensors)}/bias", np.zeros(channels, np.int32), per_tensor(0.0005, 0))
    y = b.tensor(f"conv{len(b.graph.tensors)}", (1, x.shape[1], -(-columns // stride), channels))
    fields = {"padding": padding, "strideW": stride, "strideH": 1}
    b.operator("CONV_2D", (x, weights, bias), (y,), "Conv2DOptions", dilationWFactor=1, dilationHFactor=1, **fields)
    return y


def tall(stride: int) -> Model:
    """Wide activations around a 1x5 convolution: stripes pay."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 8, 32, 4)), 16, kernel=3, seed=1)
    return b.finish(b.conv(one_by_n(b, y, 5, stride), 2, seed=2))


def flat(width: int, taps: int, stride: int, padding: int) -> Model:
    b = ModelBuilder()
    return b.finish(one_by_n(b, b.input("x", (1, 1, width, 4)), taps, stride, padding))


SHAPES = [(w, k, s, p) for w in (8, 11, 16) for k in (2, 3, 5) for s in (1, 2, 3) for p in (SAME, VALID)]


def test_the_guard_is_for_helium_one_row_and_a_stride() -> None:
    dsp, portable = profile_named("cmsis-nn-dsp"), profile_named("portable")
    for shape in SHAPES:
        operator = flat(*shape).main.operators[0]
        assert MVE.may_miscompute(operator) == portable.may_miscompute(operator) == (shape[2] > 1)
        assert not dsp.may_miscompute(operator)
    assert not MVE.may_miscompute(tall(2).main.operators[1])
    b = ModelBuilder()
    x = b.input("x", (1, 1, 8, 4), DType.FLOAT32)
    y = b.tensor("y", (1, 1, 4, 4), DType.FLOAT32)
    weights = b.constant("w", np.zeros((4, 1, 3, 4), np.float32))
    fields = {"padding": SAME, "strideW": 2, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}
    b.operator("CONV_2D", (x, weights), (y,), "Conv2DOptions", **fields)
    assert not MVE.may_miscompute(b.finish(y).main.operators[0])


@pytest.mark.parametrize(
    ("rank", "dtype", "is_wrong"), [(5, DType.INT8, True), (4, DType.INT8, False), (5, DType.INT16, False)]
)
def test_transpose_of_five_dimensions_is_named(rank: int, dtype: DType, is_wrong: bool) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (2,) * rank, dtype), b.tensor("y", (2,) * rank, dtype)
    order = b.constant("order", np.arange(rank, dtype=np.int32)[::-1].copy())
    model = b.finish(b.operator("TRANSPOSE", (x, order), (y,), "TransposeOptions").outputs[0])
    assert profile_named("cmsis-nn-dsp").may_miscompute(model.main.operators[0]) == is_wrong
    assert not profile_named("reference").may_miscompute(model.main.operators[0])
    warnings = optimize(write_model(model), Options(kernels="cmsis-nn-dsp", verify=False)).report.warnings
    assert any("they may compute TRANSPOSE 'y' wrongly" in said for said in warnings) == is_wrong


@pytest.mark.parametrize("batch", [1, 2])
def test_transposed_convolution_of_several_images_is_named(batch: int) -> None:
    b = ModelBuilder()
    shape = (batch, 4, 4, 4)
    x, y = b.input("x", shape), b.tensor("y", shape)
    operands = (b.constant("s", np.asarray(shape, np.int32)), b.constant("w", np.ones((4, 1, 1, 4), np.int8)), x)
    operator = b.operator("TRANSPOSE_CONV", operands, (y,), "TransposeConvOptions", strideH=1, strideW=1)
    assert profile_named("cmsis-nn-dsp").may_miscompute(operator) == (batch > 1)


@pytest.mark.parametrize("kernels", ["cmsis-nn-mve", "portable", "cmsis-nn-dsp"])
@pytest.mark.parametrize("stride", [1, 2])
def test_no_region_holds_what_one_row_would_make_wrong(kernels: str, stride: int) -> None:
    found = figures_of(space_of(tall(stride), profile_named(kernels)))
    holds = any(tiling.first <= 1 < tiling.end for tiling in found)
    assert holds == (kernels == "cmsis-nn-dsp" or stride == 1)


def test_a_stage_that_leads_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def striped(model: Model, profile: object, options: Options, *_: object, **__: object) -> Changed:
        if options.cascade:
            apply_tilings(model, [Tiling(0, 2, Unrolled(tuple(range(1, 9)), *UNROLLED[0]))])
        return Changed(model, (), ())

    monkeypatch.setattr(transform, "cascade", striped)
    monkeypatch.setattr(WorkLimit, "is_kept_by", lambda *_: True)  # rows of one take more than twice the run time
    data = write_model(tall(2))

    def heights(**options: Any) -> set[int]:
        result = optimize(data, Options(verify=False, rewrite=False, objective="head", **options))
        convolutions = [each for each in read_model(result.model).main.operators if is_one_by_five(each)]
        return {each.inputs[0].shape[1] for each in convolutions if each.inputs[0] is not None}

    assert heights(target="cortex-m7") == {1}
    assert heights(target="cortex-m55") == {8}


def is_one_by_five(operator: Operator) -> bool:
    return operator.name == "CONV_2D" and operator.inputs[1] is not None and operator.inputs[1].shape[1:3] == (1, 5)


def test_an_original_that_the_library_computes_wrongly_is_said() -> None:
    data = write_model(flat(11, 5, 2, SAME))
    said = [
        any("a bug in these kernels, in the original too" in text for text in result.report.warnings)
        for result in (optimize(data, Options(verify=False, target=name)) for name in ("cortex-m55", "cortex-m7", None))
    ]
    assert said == [True, False, False]
