"""Blocks that run in pieces of their columns: what is one, and what it reads. Values: tests/program/test_feed.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.makers.model_builder import ModelBuilder
from tflite_memopt.cascade.region import Region, region_of
from tflite_memopt.ir.making import VALID
from tflite_memopt.ir.model import Tensor
from tflite_memopt.operators.rows import Axis
from tflite_memopt.program.columns import _composed, _reads, with_blocks


@st.composite
def chains(draw: st.DrawFn) -> list[Axis]:
    """Windows one after the other, each with the padding that makes of its input what the next one reads."""
    size, found = draw(st.integers(8, 30)), list[Axis]()
    for _ in range(draw(st.integers(1, 4))):
        reach, stride = draw(st.integers(1, 4)), draw(st.integers(1, 2))
        before, after = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        outputs = (size + before + after - reach) // stride + 1
        if outputs < 1:
            break
        found.append(Axis(size, outputs, stride, reach, before, after))
        size = outputs
    return found or [Axis(size, size)]


@given(chains(), st.data())
def test_a_chain_reads_as_one_window_does(axes: list[Axis], data: st.DataObject) -> None:
    start = data.draw(st.integers(-3, axes[-1].outputs - 1))
    end = data.draw(st.integers(start + 1, axes[-1].outputs + 3))
    assert _composed(axes).reads(start, end) == _reads(axes, start, end)


def padded(b: ModelBuilder, x: Tensor) -> Tensor:
    made = b.tensor("padded", (1, x.shape[1] + 2, x.shape[2] + 2, x.shape[3]))
    b.operator("PAD", (x, b.constant("amounts", np.asarray([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))), (made,))
    return made


def plain(b: ModelBuilder, x: Tensor) -> Tensor:
    return b.conv(b.depthwise(b.conv(x, 16)), 4)


def with_pad(b: ModelBuilder, x: Tensor) -> Tensor:
    return b.conv(b.depthwise(padded(b, b.conv(x, 16)), padding=VALID), 4)


def pad_in_between(b: ModelBuilder, x: Tensor) -> Tensor:
    """What is padded goes through a convolution, which makes something else of the zero point."""
    return b.conv(b.depthwise(b.conv(padded(b, b.conv(x, 16)), 16), padding=VALID), 4)


def read_twice(b: ModelBuilder, x: Tensor) -> Tensor:
    y = b.conv(x, 16)
    return b.conv(b.add(b.depthwise(y), y), 4)


def no_expansion(b: ModelBuilder, x: Tensor) -> Tensor:
    return b.conv(b.depthwise(b.conv(x, 4)), 2)


def no_projection(b: ModelBuilder, x: Tensor) -> Tensor:
    return b.conv(b.depthwise(b.conv(x, 16)), 16)


def region(make: Callable[[ModelBuilder, Tensor], Tensor]) -> Region:
    b = ModelBuilder()
    model = b.finish(make(b, b.input("x", (1, 12, 10, 4))))
    found = region_of(model.main, model.main.operators)
    assert isinstance(found, Region)
    return found


@pytest.mark.parametrize("make", [plain, with_pad])
def test_a_block_stands_for_all_of_its_operators(make: Callable[[ModelBuilder, Tensor], Tensor]) -> None:
    found = with_blocks(region(make), 4)
    assert not isinstance(found, str)
    whole, blocks = found
    assert len(whole.steps) == len(blocks) == 1
    (operator, way), (block,) = whole.steps[0], blocks.values()
    assert operator.inputs[0] is block.source is whole.inputs[0]
    assert way.rows == Axis(12, 12, 1, 3, 1, 1)
    assert way.columns == Axis(10, 10, 1, 3, 1, 1)


@pytest.mark.parametrize("make", [pad_in_between, read_twice, no_expansion, no_projection])
def test_what_is_no_block_stays_as_it_is(make: Callable[[ModelBuilder, Tensor], Tensor]) -> None:
    assert with_blocks(region(make), 4) == "no window in it reads rows that are made of narrower ones"
