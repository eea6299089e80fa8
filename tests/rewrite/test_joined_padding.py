"""A PAD of whole rows becomes a concatenation with constant rows."""

from __future__ import annotations

import numpy as np

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, I32, Branch, assert_exact, assert_refused, quantization_of, refusals
from tflite_memopt import Options
from tflite_memopt.memory.arrange import cost_of
from tflite_memopt.memory.work import WorkLimit, instructions
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.search.rewrite.pixels import JOINED_PADDING
from tflite_memopt.search.rewrite.tiles import simplified


def padded(branch: Branch) -> None:
    """Rows above, below or both, of the outermost dimension that is more than 1, or of one outside that."""
    pick = branch.random
    dtype = pick.choice((F32, I8, I16))
    ones = pick.randint(0, 2)
    shape = [1] * ones + [pick.randint(2, 5) for _ in range(pick.randint(1, 4 - ones))]
    axis = pick.randint(0, ones)
    amounts = np.zeros((len(shape), 2), np.int32)
    amounts[axis] = pick.choice(((2, 0), (0, 3), (1, 1)))
    x = branch.input(shape, dtype, **branch.quantization(dtype))
    y = branch.tensor(
        [size + int(more.sum()) for size, more in zip(shape, amounts, strict=True)], dtype, **quantization_of(x)
    )
    if pick.random() < 0.5:
        branch.run("PAD", (x, branch.constant(amounts)), y, "PadOptions")
    else:
        value = branch.constant(branch.values((1,), dtype), x.quantization)
        branch.run("PADV2", (x, branch.constant(amounts), value), y, "PadV2Options")


def test_the_same_bits() -> None:
    assert_exact(JOINED_PADDING, padded, 6, 60)


def causal() -> Model:
    """A sequence, a causal convolution of it over 16 rows back, and their sum."""
    b = ModelBuilder()
    given = b.input("given", (1, 64, 1, 16))
    x, y, z = b.add(given, given), b.tensor("padded", (1, 80, 1, 16)), b.tensor("z", (1, 64, 1, 16))
    by = b.constant("by", np.asarray([[0, 0], [16, 0], [0, 0], [0, 0]], np.int32))
    b.operator("PAD", (x, by), (y,), "PadOptions")
    weights = b.constant("weights", np.ones((16, 2, 1, 16), np.int8), per_tensor(0.01, 0))
    fields = {"padding": VALID, "strideH": 1, "strideW": 1, "dilationHFactor": 16, "dilationWFactor": 1}
    b.operator("CONV_2D", (y, weights, None), (z,), "Conv2DOptions", **fields)
    return b.finish(b.add(x, z))


def test_a_residual_exists_once() -> None:
    """The sequence is a view of the padded one; before, both existed beside the convolution's output."""
    options = Options()
    model = causal()
    cost = cost_of(model, options.profile, options.search)
    work = WorkLimit(instructions(model, options.profile), 1.0, options.profile)
    found = simplified(model, cost, (JOINED_PADDING,), options.profile, options.search, 10**9, work)
    assert found is not None
    assert found[1].saved_bytes >= 3328 - 3072  # sequence, padded one and product, against what the sum needs
    assert [operator.name for operator in found[0].main.operators] == ["ADD", "CONCATENATION", "CONV_2D", "ADD"]


def image(amounts: list[list[int]], dtype: DType = I8, is_computed: bool = False) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 2), dtype)
    y = b.tensor("y", [size + sum(more) for size, more in zip(x.shape, amounts, strict=True)], dtype)
    by = b.input("by", (4, 2), I32) if is_computed else b.constant("by", np.asarray(amounts, np.int32))
    b.operator("PAD", (x, by), (y,), "PadOptions")
    return b.finish(y)


def test_refusals() -> None:
    rows, columns = [[0, 0], [1, 0], [0, 0], [0, 0]], [[0, 0], [1, 1], [1, 1], [0, 0]]
    assert_refused(image(rows, is_computed=True), JOINED_PADDING, "computed")
    more = "it pads more than whole rows: what it copies is no range of its output"
    assert refusals(image(columns), JOINED_PADDING) == [more]
    assert refusals(image(columns[:1] + rows[:1] + rows[1:2] + rows[:1]), JOINED_PADDING) == [more]
    unknown = "its value is computed, or its type has no constants here"
    assert refusals(image(rows, I32), JOINED_PADDING) == [unknown]
