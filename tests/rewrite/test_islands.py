"""Floats between DEQUANTIZE and QUANTIZE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    LITERT,
    TFLM,
    Branch,
    assert_exact,
    refusals,
)
from tests.tflm import run_models
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.islands import INTEGER_CLAMP, LATER_DEQUANTIZE
from tflite_memopt.search.rewrite.loadable import mended

BOTH = (LATER_DEQUANTIZE, INTEGER_CLAMP)
Operands = tuple[list[Tensor | None], list[tuple[int, ...]], str | None, dict[str, Any]]
"""Inputs, shapes of the outputs, and options."""


def reduced(b: Branch, x: Tensor) -> Operands:
    keep = b.random.random() < 0.5
    shape = (1, 1, 1, x.shape[3]) if keep else (1, x.shape[3])
    return [x, b.ints(1, 2)], [shape], "ReducerOptions", {"keepDims": keep}


def transposed(b: Branch, x: Tensor) -> Operands:
    return [x, b.ints(0, 3, 1, 2)], [(1, x.shape[3], *x.shape[1:3])], "TransposeOptions", {}


def reshaped(b: Branch, x: Tensor) -> Operands:
    shape = (1, int(np.prod(x.shape)))
    return [x, b.ints(*shape)], [shape], "ReshapeOptions", {"newShape": np.asarray(shape, np.int32)}


def split(b: Branch, x: Tensor) -> Operands:
    axis = b.constant(np.asarray(1, np.int32))
    return [axis, x], [(1, x.shape[1] // 2, *x.shape[2:])] * 2, "SplitOptions", {"numSplits": 2}


def cut(b: Branch, x: Tensor) -> Operands:
    shape = (1, 2, *x.shape[2:])
    return [x, b.ints(0, 1, 0, 0), b.ints(*shape)], [shape], "SliceOptions", {}


MOVED: dict[str, Callable[[Branch, Tensor], Operands]] = {
    "REDUCE_MAX": reduced,
    "REDUCE_MIN": reduced,
    "TRANSPOSE": transposed,
    "RESHAPE": reshaped,
    "SPLIT": split,
    "SLICE": cut,
}


def moved(name: str) -> Callable[[Branch], None]:
    """An operator on floats of int8, whose outputs are quantized as before."""

    def write(b: Branch) -> None:
        pick, quantization = b.random, b.quantization(I8)
        q = b.input((1, 2 * pick.randint(2, 3), pick.randint(2, 5), pick.randint(1, 4)), I8, **quantization)
        x = b.tensor(q.shape, F32)
        b.builder.operator("DEQUANTIZE", (q,), (x,), "DequantizeOptions")
        inputs, shapes, kind, fields = MOVED[name](b, x)
        outputs = [b.tensor(shape, F32) for shape in shapes]
        b.builder.operator(name, inputs, outputs, kind, **fields)
        for output in outputs:
            b.run("QUANTIZE", (output,), b.tensor(output.shape, I8, **quantization), "QuantizeOptions")

    return write


@pytest.mark.parametrize("name", MOVED)
def test_integers_are_moved_and_chosen_in_place_of_floats(name: str) -> None:
    assert_exact(LATER_DEQUANTIZE, moved(name), 1, 12)


def clamped(clamps: Sequence[str], dtype: DType, scales: tuple[float, float], points: tuple[int, int]) -> Model:
    """All integers of a type, through floats."""
    b = ModelBuilder()
    count = 256 if dtype is I8 else 1 << 16
    x = b.input("q", (1, count), dtype, scale=scales[0], zero_point=points[0])
    for number, name in enumerate(("DEQUANTIZE", *clamps)):
        y = b.tensor(f"f{number}", x.shape, F32)
        b.operator(name, (x,), (y,), "DequantizeOptions" if name == "DEQUANTIZE" else None)
        x = y
    y = b.tensor("r", x.shape, dtype, scale=scales[1], zero_point=points[1])
    b.operator("QUANTIZE", (x,), (y,), "QuantizeOptions")
    return b.finish(y)


def kinds(model: Model) -> list[str]:
    return [operator.name for operator in model.main.operators]


CASES: dict[str, tuple[tuple[Sequence[str], DType, tuple[float, float], tuple[int, int]], list[str]]] = {
    "nothing": (((), I8, (0.037, 0.037), (11, 11)), []),
    "of 16 bits": (((), I16, (0.00037, 0.00037), (0, 0)), []),
    "another scale": (((), I8, (0.037, 0.0211), (11, -4)), ["QUANTIZE"]),
    "6 is the largest": ((("RELU6",), I8, (0.18593, 6 / 255), (1, -128)), ["QUANTIZE"]),
    "6 is less than the largest": ((("RELU6",), I8, (0.18593, 0.0351), (1, -128)), ["QUANTIZE", "RELU6"]),
    "one scale": ((("RELU",), I8, (0.037, 0.037), (11, 11)), ["RELU"]),
    "both ends": ((("RELU6",), I8, (0.071, 0.071), (-11, -11)), ["RELU6"]),
    "around 0": ((("RELU_N1_TO_1",), I8, (0.0371, 0.0083), (11, 5)), ["QUANTIZE", "MAXIMUM", "MINIMUM"]),
    "two clamps": ((("RELU_N1_TO_1", "RELU"), I8, (0.0371, 1 / 255), (11, -128)), ["QUANTIZE"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_clamp_is_one_of_integers(case: str) -> None:
    arguments, expected = CASES[case]
    original, model = clamped(*arguments), clamped(*arguments)
    samples = np.arange(-128, 128) if arguments[1] is I8 else np.arange(-(1 << 15), 1 << 15)
    driver = Driver(model)
    driver.apply_everywhere(BOTH)
    assert kinds(model) == expected
    if not expected:
        assert model.main.outputs == model.main.inputs
        return
    proof = prove(original, model)
    assert proof.status is Status.PROVED, proof
    assert not proof.is_finite
    runtimes = (LITERT,) if "RELU_N1_TO_1" in arguments[0] else (LITERT, TFLM)
    for runtime in runtimes:
        data = [[samples.astype(arguments[1].label).reshape(1, -1)]]
        both = {"one": write_model(original), "other": write_model(model)}
        found = run_models(runtime, both, data, 64 << 20)
        assert all(run.ran for run in found.values()), {name: run.reason for name, run in found.items()}
        a, b = (run.outputs[0][0] for run in found.values())
        assert a.tobytes() == b.tobytes()


def many(count: int, seed: int) -> Model:
    """Clamps between random scales and zero points, each of an input that all integers fit in."""
    draw, b, outputs = Random(seed), ModelBuilder(), []
    for number in range(count):
        scales = [draw.uniform(0.004, 0.1) for _ in range(2)]
        x = b.input(f"q{number}", (1, 256), I8, scale=scales[0], zero_point=draw.randint(-128, 127))
        y = b.tensor(
            f"r{number}", x.shape, I8, scale=scales[1], zero_point=draw.choice((-128, draw.randint(-128, 127)))
        )
        clamps = draw.choice(((), ("RELU",), ("RELU6",), ("RELU6", "RELU")))
        for at, name in enumerate(("DEQUANTIZE", *clamps)):
            z = b.tensor(f"f{number}/{at}", x.shape, F32)
            b.operator(name, (x,), (z,), "DequantizeOptions" if name == "DEQUANTIZE" else None)
            x = z
        b.operator("QUANTIZE", (x,), (y,), "QuantizeOptions")
        outputs.append(y)
    return b.finish(*outputs)


@pytest.mark.parametrize("seed", range(2))
def test_random_clamps_give_the_same_of_all_integers(seed: int) -> None:
    original = many(40, seed)
    model = copy_model(original)
    Driver(model).apply_everywhere(BOTH)
    wide = kinds(model).count("DEQUANTIZE")
    assert 0 < wide < 30  # those whose scales rise, or that round where kernels may differ
    assert prove(original, model).status is Status.PROVED
    samples = [[np.arange(-128, 128).astype(np.int8).reshape(1, -1)] * 40]
    for runtime in (LITERT, TFLM):
        found = run_models(runtime, {"one": write_model(original), "other": write_model(model)}, samples, 64 << 20)
        assert all(run.ran for run in found.values()), {name: run.reason for name, run in found.items()}
        for a, b in zip(found["one"].outputs[0], found["other"].outputs[0], strict=True):
            assert a.tobytes() == b.tobytes()


REFUSED: dict[str, tuple[tuple[Sequence[str], DType, tuple[float, float], tuple[int, int]], str]] = {
    "halves": (((), I8, (0.05, 0.1), (0, 0)), "halfway"),
    "rounded twice": (((), I8, (0.0301, 0.1), (0, 0)), "too far apart"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_kernels_may_round_otherwise_stays(case: str) -> None:
    arguments, reason = REFUSED[case]
    (said,) = refusals(clamped(*arguments), INTEGER_CLAMP)
    assert reason in said
    model = ModelBuilder()
    x = model.input("q", (1, 256), scale=arguments[2][0], zero_point=arguments[3][0])
    y = model.tensor("r", x.shape, I8, scale=arguments[2][1], zero_point=arguments[3][1])
    model.operator("QUANTIZE", (x,), (y,), "QuantizeOptions")
    assert prove(clamped(*arguments), model.finish(y)).status is Status.DIFFERENT


def test_six_beyond_the_integers_of_kernels_is_no_relu6() -> None:
    model = clamped(("RELU6",), I8, (1e-9, 1e-9), (3, 3))
    original = copy_model(model)
    Driver(model).apply_everywhere(BOTH)
    assert kinds(model) == ["RELU"]
    assert prove(original, model).status is Status.PROVED


def test_zero_points_that_kernels_of_integers_refuse_stay_in_floats() -> None:
    for dtype, point in ((I16, 32767), (I8, -140)):
        assert refusals(clamped(("RELU",), dtype, (0.0003, 0.0003), (point, point)), INTEGER_CLAMP) == []


def test_floats_that_others_need_stay() -> None:
    b = ModelBuilder()
    q = b.input("q", (1, 4, 4, 2), scale=0.05, zero_point=3)
    x, y, z = (
        b.tensor("x", q.shape, F32),
        b.tensor("y", (1, 2), F32),
        b.tensor("z", (1, 2), I8, scale=0.05, zero_point=3),
    )
    b.operator("DEQUANTIZE", (q,), (x,), "DequantizeOptions")
    axes = b.constant("axes", np.asarray([1, 2], np.int32))
    b.operator("REDUCE_MAX", (x, axes), (y,), "ReducerOptions")
    b.operator("QUANTIZE", (y,), (z,), "QuantizeOptions")
    (said,) = refusals(copy_model(b.finish(z, x)), LATER_DEQUANTIZE)
    assert "'x' is needed by others" in said
    assert refusals(copy_model(b.finish(z, y)), LATER_DEQUANTIZE) == []  # floats are returned


def test_a_long_chain_of_moves_is_no_recursion() -> None:
    b = ModelBuilder()
    q = b.input("q", (1, 2, 3, 4), scale=0.05, zero_point=3)
    at, order = b.tensor("x", q.shape, F32), b.constant("order", np.asarray([0, 2, 1, 3], np.int32))
    b.operator("DEQUANTIZE", (q,), (at,), "DequantizeOptions")
    for number in range(1201):
        turned = b.tensor(f"y{number}", (1, *at.shape[2:0:-1], 4), F32)
        b.operator("TRANSPOSE", (at, order), (turned,), "TransposeOptions")
        at = turned
    z = b.tensor("z", at.shape, I8, scale=0.05, zero_point=3)
    b.operator("QUANTIZE", (at,), (z,), "QuantizeOptions")
    model = b.finish(z)
    assert Driver(model).apply_at(BOTH, model.main, model.main.operators[1])


def test_a_clamp_that_tflm_lacks_is_written_so_that_it_loads() -> None:
    model = clamped(("RELU_N1_TO_1",), I8, (0.0371, 1 / 127), (11, 0))
    found = mended(copy_model(model))
    assert not found.before.support.runs
    assert found.after.runs
    assert set(kinds(found.model)) <= {"QUANTIZE", "MAXIMUM", "MINIMUM"}
    assert prove(model, found.model).proved
