"""STRIDED_SLICE without strides becomes SLICE."""

from __future__ import annotations

import numpy as np

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, I32, Branch, assert_exact, assert_refused, quantization_of, refusals
from tflite_memopt.kernels.profiles import PORTABLE
from tflite_memopt.memory.reserve import reserve
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.operators.requests import ILP32
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.pixels import PLAIN_SLICE


def cut(branch: Branch) -> None:
    """A box of a tensor of any rank, counted from either end, with masks; steps only where one element is taken."""
    pick = branch.random
    dtype = pick.choice((F32, I8, I16))
    shape = [pick.randint(1, 6) for _ in range(pick.randint(1, 4))]
    x = branch.input(shape, dtype, **branch.quantization(dtype))
    first = [pick.randrange(size) for size in shape]
    count = [pick.randint(1, size - at) for size, at in zip(shape, first, strict=True)]
    begin, end, steps, masks = [], [], [], [0, 0]
    for axis, (size, at, many) in enumerate(zip(shape, first, count, strict=True)):
        begin.append(at - size if pick.random() < 0.3 else at)
        end.append(at + many - size if pick.random() < 0.3 and at + many < size else at + many)
        steps.append(pick.choice((1, 3)) if many == 1 else 1)
        masks[0] |= (at == 0 and pick.random() < 0.5) << axis
        masks[1] |= (at + many == size and steps[-1] == 1 and pick.random() < 0.5) << axis
    y = branch.tensor(count, dtype, **quantization_of(x))
    operands = (x, branch.ints(*begin), branch.ints(*end), branch.ints(*steps))
    branch.run("STRIDED_SLICE", operands, y, "StridedSliceOptions", beginMask=masks[0], endMask=masks[1])


def test_the_same_bits() -> None:
    assert_exact(PLAIN_SLICE, cut, 5, 40)


def sliced(
    shape: tuple[int, ...] = (1, 2), dtype: DType = I8, end: int = 3, step: int = 1, shrink: int = 0, given: bool = True
) -> Model:
    """Columns 1 to ``end`` of one row; ``given``: they are constants."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 8), dtype), b.tensor("y", shape, dtype)
    begin = b.constant("begin", np.asarray((0, 1), np.int32)) if given else b.input("begin", (2,), I32)
    others = [b.constant(name, np.asarray((1, at), np.int32)) for name, at in (("end", end), ("strides", step))]
    b.operator("STRIDED_SLICE", (x, begin, *others), (y,), "StridedSliceOptions", shrinkAxisMask=shrink)
    return b.finish(y)


def test_it_leaves_108_bytes_less_in_the_tail() -> None:
    model = sliced()
    before = reserve(model, 0, PORTABLE, abi=ILP32).tail
    Driver(model).apply_everywhere((PLAIN_SLICE,))
    # The operand of the strides goes too, whose structure is in the tail until dead tensors are dropped.
    assert before - reserve(model, 0, PORTABLE, abi=ILP32).tail >= 96
    (only,) = model.main.operators
    assert only.name == "SLICE"


def test_refusals() -> None:
    assert not refusals(sliced((1, 3), end=7, step=2), PLAIN_SLICE)
    assert_refused(sliced((2,), shrink=1), PLAIN_SLICE, "dimension")
    assert_refused(sliced(dtype=DType.INT64), PLAIN_SLICE, "int64")
    assert not refusals(sliced(given=False), PLAIN_SLICE)
