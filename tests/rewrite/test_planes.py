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
from tflite_memopt.search.rewrite.planes import TRANSPOSED_PLANES, planes_along_h

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
