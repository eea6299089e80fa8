"""Concatenation + slice that keeps all channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, Branch, Pattern, assert_exact, quantization_of, refusals, rule_named
from tflite_memopt.model.ir.model import Model

SPLIT_SLICE = rule_named("split_slice")


def cut(branch: Branch) -> None:
    """SLICE, its channels given as their number or as -1."""
    pick = branch.random
    x = branch.concat(pick.choice((F32, I8, I16)))
    first = [0, *(pick.randint(0, size - 1) for size in x.shape[1:3]), 0]
    count = [x.shape[0], *(pick.randint(1, size - at) for at, size in zip(first[1:3], x.shape[1:3], strict=True))]
    y = branch.tensor((*count, x.shape[3]), x.dtype, **quantization_of(x))
    size = [*count, pick.choice((-1, x.shape[3]))]
    branch.run("SLICE", (x, branch.ints(*first), branch.ints(*size)), y, "SliceOptions")


def strided(branch: Branch) -> None:
    """STRIDED_SLICE with steps, masks and ends beyond the tensor."""
    pick = branch.random
    x = branch.concat(pick.choice((F32, I8, I16)))
    channels = x.shape[3]
    steps = [1, pick.randint(1, 3), pick.randint(1, 3), 1]
    first = [0, *(pick.randint(0, size - 1) for size in x.shape[1:3]), 0]
    masks = {"beginMask": pick.choice((0, 1, 8)), "endMask": pick.choice((0, 8, 6, 14))}
    if masks["beginMask"] == 8:
        first[3] = pick.randint(0, 3)
    end = [x.shape[0], *x.shape[1:3], channels]
    end[3] = pick.choice((channels, channels + 2, 1 if masks["endMask"] & 8 else channels))
    shape = [-(-(size - at) // step) for size, at, step in zip(x.shape, (0, *first[1:3], 0), steps, strict=True)]
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    operands = [branch.ints(*values) for values in (first, end, steps)]
    branch.run("STRIDED_SLICE", (x, *operands), y, "StridedSliceOptions", **masks)


@pytest.mark.few(1)
@pytest.mark.parametrize("pattern", [cut, strided])
def test_the_same_bits(pattern: Pattern) -> None:
    assert_exact(SPLIT_SLICE, pattern, 0, 60)


def model(
    begin: Sequence[int], end: Sequence[int], steps: Sequence[int], shape: tuple[int, ...], **masks: int
) -> Model:
    b = ModelBuilder()
    x = b.concat([b.input(f"x{count}", (1, 4, 4, count)) for count in (2, 4)])
    y = b.tensor("y", shape)
    named = {"begin": begin, "end": end, "steps": steps}
    operands = [b.constant(name, np.asarray(values, np.int32)) for name, values in named.items()]
    b.operator("STRIDED_SLICE", (x, *operands), (y,), "StridedSliceOptions", **masks)
    return b.finish(y)


ZEROS, WHOLE, ONES = (0, 0, 0, 0), (1, 4, 4, 6), (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (model(ZEROS, (1, 4, 4, 3), ONES, (1, 4, 4, 3)), "its output has other channels than the concatenation"),
        (model(ZEROS, WHOLE, (1, 1, 1, -1), WHOLE), "it steps through the channels"),
        (model(ZEROS, WHOLE, ONES, (1, 4, 6), shrinkAxisMask=2), "it adds or drops dimensions"),
        (model((0,), (1,), (1,), WHOLE), "its operands are not constant, or not one for each dimension"),
    ],
)
def test_refusals(refused: Model, reason: str) -> None:
    assert refusals(refused, SPLIT_SLICE) == [reason]
