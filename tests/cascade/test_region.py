"""Which operators are a region, and why others are not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tflite_memopt.model.ir.model import DType, Tensor
from tflite_memopt.search.cascade.region import Region, region_of

SHAPE = (1, 8, 6, 4)


def region(b: ModelBuilder, first: int, end: int | None = None) -> Region | str:
    return region_of(b.graph, b.graph.operators[first:end])


def residual() -> tuple[ModelBuilder, Tensor]:
    """quantize, conv, depthwise, add of the first and the last: a region from any start but the depthwise's."""
    b = ModelBuilder()
    x = b.tensor("x", SHAPE)
    b.operator("QUANTIZE", (b.input("real", SHAPE, DType.FLOAT32),), (x,))
    y = b.depthwise(b.conv(x, 4, kernel=3))
    b.finish(b.add(x, y))
    return b, y


def reason(b: ModelBuilder, first: int, end: int | None = None) -> str:
    """Return the reason that these steps are not a region."""
    found = region(b, first, end)
    assert isinstance(found, str)
    return found


def test_a_residual_block_is_a_region_with_one_input() -> None:
    b, _ = residual()
    found = region(b, 1)
    assert isinstance(found, Region)
    assert [tensor.name for tensor in found.inputs] == ["x"]
    assert found.exit is b.graph.outputs[0]
    whole = region(b, 0)
    assert isinstance(whole, Region)
    assert whole.inputs == b.graph.inputs


def test_two_tensors_from_outside_are_two_inputs() -> None:
    b, y = residual()
    found = region(b, 3)
    assert isinstance(found, Region)
    assert set(found.inputs) == {y, b.graph.tensors[0]}


def test_an_inner_tensor_that_is_read_outside_is_a_reason() -> None:
    b, _ = residual()
    assert "'x'" in reason(b, 0, 3)


def test_an_inner_tensor_that_is_returned_is_a_reason() -> None:
    b, y = residual()
    b.finish(*b.graph.outputs, y)
    assert f"'{y.name}'" in reason(b, 1)


def test_an_inner_tensor_that_nothing_reads_is_a_reason() -> None:
    b = ModelBuilder()
    x = b.input("x", SHAPE)
    dead = b.conv(x, 4)
    b.finish(b.conv(x, 4))
    assert f"'{dead.name}'" in reason(b, 0)


def test_a_variable_is_a_reason() -> None:
    b = ModelBuilder()
    x, state = b.input("x", SHAPE), b.tensor("state", SHAPE)
    state.is_variable = True
    b.finish(b.add(x, state))
    assert "'state'" in reason(b, 0)


def test_an_inner_tensor_that_is_broadcast_is_a_reason() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4))
    gate = b.average_pool(x, 8)
    product = b.tensor("product", x.shape)
    b.operator("MUL", (x, gate), (product,), "MulOptions")
    b.finish(product)
    assert f"'{gate.name}'" in reason(b, 0)
    alone = region(b, 1)
    assert isinstance(alone, Region)
    assert alone.inputs == (x,)


def test_the_reason_of_an_operator_names_it() -> None:
    b = ModelBuilder()
    x = b.input("x", SHAPE)
    y = b.conv(x, 4)
    b.finish(b.reshape(y, (1, 192)))
    assert reason(b, 0).startswith("RESHAPE 'reshape1': ")


@pytest.mark.parametrize("dtype", [DType.UINT8, DType.FLOAT16, DType.INT64])
def test_a_type_that_tflm_cannot_slice_is_a_reason(dtype: DType) -> None:
    b = ModelBuilder()
    x, y = b.input("x", SHAPE, dtype), b.tensor("y", SHAPE)
    b.operator("QUANTIZE", (x,), (y,))
    z = b.conv(y, 4)
    back = b.tensor("back", SHAPE, dtype)
    b.operator("QUANTIZE", (z,), (back,))
    b.finish(back)
    assert [name for name in ("'x'", dtype.label) if name not in reason(b, 0, 2)] == []
    assert [name for name in ("'back'", dtype.label) if name not in reason(b, 1, 3)] == []
    assert isinstance(region(b, 1, 2), Region)


@pytest.mark.parametrize(("zero", "is_one"), [(-129, False), (-128, True), (127, True), (256, False)])
def test_a_zero_point_that_is_no_value_of_its_type_is_a_reason(zero: int, is_one: bool) -> None:
    b = ModelBuilder()
    b.finish(b.conv(b.input("x", SHAPE, zero_point=zero), 4, kernel=3))
    found = region(b, 0)
    assert isinstance(found, Region) == is_one
    assert is_one or "'x'" in reason(b, 0)


def test_constants_are_no_inputs() -> None:
    b = ModelBuilder()
    x = b.input("x", SHAPE)
    y = b.tensor("y", SHAPE)
    b.operator("MUL", (x, b.constant("factor", np.ones((1, 1, 1, 4), np.int8), x.quantization)), (y,), "MulOptions")
    b.finish(y)
    found = region(b, 0)
    assert isinstance(found, Region)
    assert found.inputs == (x,)


def test_of_several_tensors_that_are_read_outside_the_first_is_named() -> None:
    b = ModelBuilder()
    inner = [b.input("x", (1, 8, 8, 4))]
    for number in range(20):
        inner.append(b.conv(inner[-1], 4, seed=number))
    b.finish(*inner[1:])
    assert f"'{inner[1].name}'" in reason(b, 0)
