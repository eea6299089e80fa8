"""One SPLIT in place of a slice for each part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, I32, Branch, assert_exact, assert_refused, quantization_of, refusals
from tflite_memopt import Options, optimize
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import drop_dead_tensors
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.one_split import SPLIT_OF_SLICES


def cut(branch: Branch, x: Tensor, axis: int, first: int, size: int) -> Tensor:
    """Some places of an axis; at times in another shape, with more ones."""
    begin = [0] * len(x.shape)
    begin[axis] = first
    shape = [*x.shape[:axis], size, *x.shape[axis + 1 :]]
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    said = [-1 if branch.random.random() < 0.2 and at != axis else each for at, each in enumerate(shape)]
    branch.builder.operator("SLICE", (x, branch.ints(*begin), branch.ints(*said)), (y,), "SliceOptions")
    return y


def reshaped(branch: Branch, x: Tensor, shape: Sequence[int]) -> Tensor:
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    branch.builder.operator("RESHAPE", (x, branch.ints(*shape)), (y,), "ReshapeOptions")
    return y


def apart(branch: Branch) -> None:
    """A tensor in parts along its outermost long axis, and each of these in parts, with reshapes between."""
    pick = branch.random
    dtype = pick.choice((F32, I8, I16, I32))
    steps, parts, width = pick.randint(3, 5), pick.randint(1, 3), pick.randint(1, 5)
    outer = [1] * pick.randint(0, 2)
    x = branch.input((*outer, steps, parts * width), dtype, **branch.quantization(dtype))
    if pick.random() < 0.3:
        x = reshaped(branch, x, (steps, 1, parts * width))
        outer = []
    rows = [cut(branch, x, len(outer), step, 1) for step in pick.sample(range(steps), steps)]
    if pick.random() < 0.5:
        rows = [reshaped(branch, row, (1, parts * width)) for row in rows]
    if parts > 1:
        rows = [cut(branch, row, len(row.shape) - 1, at * width, width) for row in rows for at in range(parts)]
    if pick.random() < 0.3:
        rows[-1] = reshaped(branch, rows[-1], (1, 1, rows[-1].elements))
    branch.outputs += rows


@pytest.mark.slow
@pytest.mark.few(1)
def test_the_same_bits() -> None:
    assert_exact(SPLIT_OF_SLICES, apart, 3, 120)


def model(*cuts: tuple[int, int], scale: float = 0.05, shape: tuple[int, ...] = (1, 12), read: bool = False) -> Model:
    """Parts of a tensor, each read by an ADD; ``scale``: of the last one."""
    b = ModelBuilder()
    x = b.add(*[b.input("x", shape)] * 2)
    outputs = [b.add(x, x)] if read else []
    for number, (first, size) in enumerate(cuts):
        said = (b.constant(f"at{number}", np.asarray(each, np.int32)) for each in ((0, first), (shape[0], size)))
        y = b.tensor(f"y{number}", (shape[0], size), scale=scale if number == len(cuts) - 1 else 0.05)
        b.operator("SLICE", (x, *said), (y,), "SliceOptions")
        outputs.append(b.add(y, y))
    return b.finish(*outputs)


def names(found: Model) -> list[str]:
    driver = Driver(found)
    driver.apply_everywhere((SPLIT_OF_SLICES,))
    drop_dead_tensors(found)
    return [operator.name for operator in found.main.operators if operator.name != "ADD"]


def test_equal_parts_along_an_axis_need_nothing_else() -> None:
    assert names(model((0, 4), (4, 4), (8, 4))) == ["SPLIT"]
    assert names(model((8, 4), (0, 4), (4, 4), read=True)) == ["SPLIT"]


@pytest.mark.parametrize(
    "found",
    [
        model((0, 4), (4, 4)),  # a rest that nobody reads
        model((0, 4), (4, 8)),
        model((0, 6), (3, 6), (6, 6)),
        model((0, 12)),
        model((0, 6), (6, 6)),  # two of them
        model((0, 4), (4, 4), (8, 4), shape=(2, 12)),  # no runs of elements
    ],
)
def test_other_slices_stay(found: Model) -> None:
    assert refusals(found, SPLIT_OF_SLICES) == []


def test_a_part_that_means_other_numbers_stays() -> None:
    assert_refused(model((0, 4), (4, 4), (8, 4), scale=0.1), SPLIT_OF_SLICES, "'y2'")


def gates(steps: int = 12, width: int = 8) -> Model:
    """Steps that differ in their weights, each with three gates that are cut out of one dense layer."""
    b = ModelBuilder()
    state = b.input("x", (1, width))
    for step in range(steps):
        made = b.dense(state, 3 * width, seed=step)
        parts = []
        for gate in range(3):
            part = b.tensor(f"{made.name}/{gate}", (1, width), scale=made.quantization.scale[0])  # type: ignore[union-attr]
            part.quantization = made.quantization
            said = (((0, gate * width), "begin"), ((1, width), "size"))
            operands = (b.constant(f"{part.name}/{name}", np.asarray(at, np.int32)) for at, name in said)
            b.operator("SLICE", (made, *operands), (part,), "SliceOptions")
            parts.append(part)
        state = b.add(b.add(parts[0], parts[1]), parts[2])
    return b.finish(state)


@pytest.mark.slow
def test_an_unrolled_network_has_fewer_structures() -> None:
    found = optimize(write_model(gates()), Options(samples=3, effort="quick", every_byte=True))
    used = [operator.name for operator in read_model(found.model).main.operators]
    assert used.count("SPLIT") == 12
    assert "SLICE" not in used
    assert {name: proof.status for name, proof in found.report.proofs.items()} == {"result": "proved", "plan": "proved"}
    assert {found.report.equivalence[name].equal for name in ("litert", "tflm")} == {True}
    assert found.report.after.required_bytes["32"] <= 0.93 * found.report.before.required_bytes["32"]
