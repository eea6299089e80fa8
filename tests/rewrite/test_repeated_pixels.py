"""UpSampling2D as Keras 3 writes it: two TILEs become one RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, Branch, assert_exact, quantization_of
from tflite_memopt import Options, optimize
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.pixels import REPEATED_PIXELS
from tflite_memopt.search.rewrite.shapes import DEAD_OPERATORS

TILED, JOINED = REPEATED_PIXELS


def repeated(b: ModelBuilder, x: Tensor, axis: int, times: int, wanted: Sequence[int] = ()) -> Tensor:
    """Pixels along one axis, as the converter writes numpy's ``repeat``."""
    expanded = (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])
    shape = tuple(wanted) or tuple(size * (times if at == axis else 1) for at, size in enumerate(x.shape))
    counts = [times if at == axis + 1 else 1 for at in range(5)]
    made = x
    for name, size, operand in (
        ("EXPAND_DIMS", expanded, np.asarray(axis + 1, np.int32)),
        ("TILE", tuple(np.multiply(expanded, counts).tolist()), np.asarray(counts, np.int32)),
        ("RESHAPE", shape, np.asarray(shape, np.int32)),
    ):
        y = Tensor(f"{name}{len(b.graph.tensors)}", size, x.dtype, x.buffer, x.quantization)
        b.graph.add_tensor(y)
        b.operator(name, (made, b.constant(f"{y.name}/operand", operand)), (y,))
        made = y
    return made


def upsampled(branch: Branch) -> None:
    pick = branch.random
    dtype = pick.choice((F32, I8))
    shape = (pick.choice((1, 1, 2)), *(pick.randint(1, 9) for _ in range(3)))
    x = branch.input(shape, dtype, **branch.quantization(dtype))
    y = repeated(branch.builder, x, pick.choice((1, 2)), pick.randint(2, 5))
    out = branch.tensor(y.shape, dtype, **quantization_of(x))
    branch.run("RELU", (y,), out)


def test_the_same_bits() -> None:
    assert_exact(TILED, upsampled, 1, 40, ("litert",))  # TFLM has no TILE


def resized_twice(branch: Branch) -> None:
    pick = branch.random
    dtype = pick.choice((F32, I8))
    x = branch.input((1, *(pick.randint(1, 9) for _ in range(3))), dtype, **branch.quantization(dtype))
    y = x
    for factors in ((pick.randint(1, 3), pick.randint(2, 3)), (pick.randint(1, 3), pick.randint(2, 3))):
        shape = (1, y.shape[1] * factors[0], y.shape[2] * factors[1], y.shape[3])
        made = branch.tensor(shape, dtype, **quantization_of(x))
        fields = {"alignCorners": False, "halfPixelCenters": False}
        kind = "ResizeNearestNeighborOptions"
        branch.builder.operator("RESIZE_NEAREST_NEIGHBOR", (y, branch.ints(*shape[1:3])), (made,), kind, **fields)
        y = made
    branch.outputs.append(y)


def test_two_resizes_are_one() -> None:
    assert_exact(JOINED, resized_twice, 1, 40)


def network(axes: Sequence[int] = (1, 2), wanted: Sequence[int] = ()) -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 6, 6, 4)), 4, kernel=3)
    for axis in axes:
        y = repeated(b, y, axis, 2, wanted)
    return b.finish(b.conv(y, 2, kernel=3))


def test_tflm_runs_what_it_could_not_load() -> None:
    report = optimize(write_model(network()), Options(samples=2, cascade=False)).report
    assert report.as_it_came.makes == "cannot run"
    assert "head" in report.after.tflm
    assert report.basis.plan_executed
    assert report.after.operators == 3
    assert report.equivalence["litert"].equal


@pytest.mark.parametrize(
    ("axes", "wanted", "reason"),
    [((3,), (), "other things than rows or columns"), ((1,), (1, 6, 12, 4), "other things than rows or columns")],
)
def test_what_is_repeated_otherwise_is_left_alone(axes: Sequence[int], wanted: Sequence[int], reason: str) -> None:
    driver = Driver(network(axes, wanted))
    driver.apply_everywhere((TILED, DEAD_OPERATORS))
    assert not driver.applied
    assert reason in next(iter(driver.refused.values())).reason


def test_centers_of_pixels_are_not_joined() -> None:
    b = ModelBuilder()
    y = b.input("x", (1, 4, 4, 2))
    for size in (8, 16):
        made = b.tensor(f"y{size}", (1, size, size, 2))
        said = b.constant(f"size{size}", np.asarray((size, size), np.int32))
        b.operator("RESIZE_NEAREST_NEIGHBOR", (y, said), (made,), "ResizeNearestNeighborOptions", halfPixelCenters=True)
        y = made
    driver = Driver(b.finish(y))
    driver.apply_everywhere((JOINED,))
    assert not driver.applied
