"""Images with channels first, transposed row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, Branch, assert_exact, assert_refused, quantization_of, refusals
from tflite_memopt import Options, optimize
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.search.rewrite.planes import TRANSPOSED_FIRST, TRANSPOSED_PLANES, planes_along_h

M7 = Options(target="cortex-m7", samples=3, effort="quick", every_byte=True)


def image(branch: Branch) -> None:
    """Channels first to last, or back."""
    pick = branch.random
    first, last = (0, 2, 3, 1), (0, 3, 1, 2)
    order = pick.choice((first, last))
    shape = [1, pick.randint(2, 12), pick.randint(2, 7), pick.randint(2, 7)]
    if order == last:
        shape = [shape[axis] for axis in first]
    dtype = pick.choice((F32, I8, I16))
    x = branch.input(shape, dtype, **branch.quantization(dtype))
    y = branch.tensor([shape[axis] for axis in order], dtype, **quantization_of(x))
    branch.run("TRANSPOSE", (x, branch.ints(*order)), y, "TransposeOptions")


def sequence(branch: Branch) -> None:
    """Channels first to last and along H, or back, of a sequence with three dimensions or four."""
    pick = branch.random
    channels, length, dtype = pick.randint(2, 12), pick.randint(2, 7), pick.choice((F32, I8, I16))
    ones = pick.choice(((), (1,)))
    first, last, along_h = (1, channels, *ones, length), (1, *ones, length, channels), (1, length, 1, channels)
    order = (0, *range(2, len(first)), 1)
    quantization = branch.quantization(dtype)
    if pick.random() < 0.5:
        x, between = branch.input(first, dtype, **quantization), branch.tensor(last, dtype, **quantization)
        branch.builder.operator("TRANSPOSE", (x, branch.ints(*order)), (between,), "TransposeOptions")
        branch.run("RESHAPE", (between, branch.ints(*along_h)), branch.tensor(along_h, dtype, **quantization))
    else:
        x, between = branch.input(along_h, dtype, **quantization), branch.tensor(last, dtype, **quantization)
        branch.builder.operator("RESHAPE", (x, branch.ints(*last)), (between,))
        y, back = branch.tensor(first, dtype, **quantization), (0, len(first) - 1, *range(1, len(first) - 1))
        branch.run("TRANSPOSE", (between, branch.ints(*back)), y, "TransposeOptions")


def test_the_same_bits() -> None:
    assert_exact(TRANSPOSED_PLANES, image, 4, 40)
    assert_exact(TRANSPOSED_PLANES, sequence, 4, 40)


def behind_another(branch: Branch) -> None:
    """A PAD, QUANTIZE, or RELU of an image with channels first comes before the TRANSPOSE."""
    pick = branch.random
    kind, dtype = pick.choice(("PAD", "PADV2", "QUANTIZE", "RELU")), pick.choice((F32, I8))
    shape = (1, pick.randint(2, 6), pick.randint(2, 7), pick.randint(2, 7))
    x = branch.input(shape, dtype, **branch.quantization(dtype))
    if kind == "QUANTIZE":
        y = branch.tensor(shape, I8, **branch.quantization(I8))
        branch.builder.operator("QUANTIZE", (x,), (y,), "QuantizeOptions")
    elif kind == "RELU":
        y = branch.tensor(shape, dtype, **quantization_of(x))
        branch.builder.operator("RELU", (x,), (y,))
    else:
        amounts = np.asarray([[0, 0], *([pick.randint(0, 2), pick.randint(0, 2)] for _ in range(3))], np.int32)
        y = branch.tensor([size + sum(pair) for size, pair in zip(shape, amounts.tolist(), strict=True)], dtype)
        y.quantization = x.quantization
        value = branch.constant(branch.values((1,), dtype), x.quantization)
        operands = (x, branch.constant(amounts), *((value,) if kind == "PADV2" else ()))
        branch.builder.operator(kind, operands, (y,), "PadOptions" if kind == "PAD" else "PadV2Options")
    z = branch.tensor([y.shape[axis] for axis in (0, 2, 3, 1)], y.dtype, **quantization_of(y))
    branch.run("TRANSPOSE", (y, branch.ints(0, 2, 3, 1)), z, "TransposeOptions")


def test_what_comes_before_goes_behind_with_the_same_bits() -> None:
    assert_exact(TRANSPOSED_FIRST, behind_another, 5, 60)


def padded_first(returned: bool = False) -> Model:
    """Floats, quantized and padded with channels first."""
    b = ModelBuilder()
    x, q, p, y = (
        b.input("x", (1, 3, 32, 32), F32),
        b.tensor("q", (1, 3, 32, 32)),
        b.tensor("p", (1, 3, 34, 34)),
        b.tensor("y", (1, 34, 34, 3)),
    )
    b.operator("QUANTIZE", (x,), (q,), "QuantizeOptions")
    amounts = np.asarray(((0, 0), (0, 0), (1, 1), (1, 1)), np.int32)
    b.operator("PAD", (q, b.constant("amounts", amounts)), (p,), "PadOptions")
    b.operator("TRANSPOSE", (p, b.constant("order", np.asarray((0, 2, 3, 1), np.int32))), (y,), "TransposeOptions")
    return b.finish(b.conv(y, 8, 3, 2, VALID), *((p,) if returned else ()))


def test_the_image_itself_is_in_planes() -> None:
    found = planes_along_h(padded_first())
    names = [operator.name for operator in found.model.main.operators]
    assert names == ["RESHAPE", "TRANSPOSE", "QUANTIZE", "PAD", "CONV_2D"]
    assert_refused(padded_first(returned=True), TRANSPOSED_FIRST, "'p'")


def network(
    shape: tuple[int, ...] = (1, 3, 64, 64),
    order: tuple[int, ...] = (0, 2, 3, 1),
    dtype: DType = I8,
    scale: float = 0.05,
) -> Model:
    """An image with channels first, and two convolutions of stride 2 behind its TRANSPOSE."""
    b = ModelBuilder()
    x = b.input("x", shape, dtype, scale=scale)
    y = b.tensor("y", [shape[axis] for axis in order], dtype)
    b.operator("TRANSPOSE", (x, b.constant("order", np.asarray(order, np.int32))), (y,), "TransposeOptions")
    if dtype is not I8:
        return b.finish(y)
    return b.finish(b.conv(b.conv(y, 8, 3, 2, VALID, seed=1), 8, 3, 2, VALID, seed=2))


@pytest.mark.slow
def test_the_whole_image_is_never_transposed() -> None:
    data = write_model(network())
    result = optimize(data, M7)
    report = result.report
    assert "transposed_planes" in [use.rule for use in report.rewrites]
    assert {name: proof.status for name, proof in report.proofs.items()} == {"result": "proved", "plan": "proved"}
    assert {report.equivalence[name].equal for name in ("litert", "tflm")} == {True}
    image_bytes = 3 * 64 * 64
    assert report.before.arena_bytes >= 2 * image_bytes
    assert report.after.arena_bytes < 1.5 * image_bytes
    turned = [op for graph in read_model(result.model).graphs for op in graph.operators if op.name == "TRANSPOSE"]
    assert max(op.outputs[0].nbytes for op in turned) < image_bytes / 2
    again = optimize(data, replace(M7, replay=str(report.decision), effort="normal", verify=False))
    assert again.report.after.arena_bytes == report.after.arena_bytes


def test_where_nothing_is_cut_the_transpose_stays() -> None:
    written = read_model(optimize(write_model(network()), replace(M7, cascade=False, verify=False)).model)
    assert [operator.name for operator in written.main.operators] == ["TRANSPOSE", "CONV_2D", "CONV_2D"]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (network((2, 3, 4, 4)), "several images"),
        (network((1, 1, 4, 4)), "several images"),
        (network((1, 3, 4, 0), dtype=F32), "without rows"),
        (network(dtype=DType.INT32), "int32"),
        (network(scale=0.1), "quantized otherwise"),
    ],
)
def test_refusals(model: Model, said: str) -> None:
    assert_refused(model, TRANSPOSED_PLANES, said)
    assert not planes_along_h(model).uses


def test_nothing_is_said_of_other_orders() -> None:
    assert not refusals(network((1, 8, 8, 3), (0, 2, 1, 3), F32), TRANSPOSED_PLANES)
    assert not refusals(network((1, 3, 8), (0, 2, 1), F32), TRANSPOSED_PLANES)  # nothing is computed along it
    several = network(dtype=F32)
    several.main.inputs[0].quantization = per_tensor(0.1, 0)
    assert_refused(several, TRANSPOSED_PLANES, "quantized otherwise")
