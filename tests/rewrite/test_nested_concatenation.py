"""Concatenations that others join."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, Branch, assert_exact, assert_refused, quantization_of
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.search.rewrite.channels import NESTED_CONCATENATION
from tflite_memopt.search.rewrite.engine import Driver

GOLDEN = """graph 0 main
  %0 a: int8[1, 2, 2, 2]
  %1 b: int8[1, 2, 2, 2]
  %2 c: int8[1, 2, 2, 2]
  %3 concat0: int8[1, 2, 2, 4]
  %4 concat1: int8[1, 2, 2, 6]
  %5 y: int8[1, 2, 2, 6]
  inputs %0, %1, %2
  0: %4 = CONCATENATION(%0, %1, %2) {axis=3}
  1: %5 = RELU(%4)
  outputs %5
"""


def join(branch: Branch, parts: Sequence[Tensor], axis: int) -> Tensor:
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    y = branch.tensor(shape, parts[0].dtype, **quantization_of(parts[0]))
    written = branch.random.choice((axis, axis - len(shape)))
    branch.builder.operator("CONCATENATION", parts, (y,), "ConcatenationOptions", axis=written)
    return y


def nested(branch: Branch) -> None:
    """One or two inner concatenations, at times joined twice, among other inputs."""
    pick = branch.random
    dtype, axis = pick.choice((F32, I8, I16)), pick.randint(0, 2)
    quantization = branch.quantization(dtype)

    def inputs(count: int) -> list[Tensor]:
        sizes = ([3 if at != axis else pick.randint(1, 4) for at in range(3)] for _ in range(count))
        return [branch.input(shape, dtype, **quantization) for shape in sizes]

    parts = [*inputs(pick.randint(0, 2)), join(branch, inputs(pick.randint(1, 3)), axis)]
    if pick.random() < 0.5:
        parts.append(join(branch, inputs(2), axis))
    if pick.random() < 0.3:
        parts.append(pick.choice(parts))
    pick.shuffle(parts)
    branch.outputs.append(join(branch, parts, axis))


@pytest.mark.parametrize("seed", range(2))
def test_the_same_bits(seed: int) -> None:
    assert_exact(NESTED_CONCATENATION, nested, seed, 60)


def test_the_golden_dump() -> None:
    b = ModelBuilder()
    parts = [b.input(name, (1, 2, 2, 2)) for name in "abc"]
    whole = b.concat((b.concat(parts[:2]), parts[2]))
    y = b.tensor("y", whole.shape)
    b.operator("RELU", (whole,), (y,))
    model = b.finish(y)
    Driver(model).apply_everywhere((NESTED_CONCATENATION,))
    assert dump_model(model) == GOLDEN


def two(inner_inputs: int = 2, outer_inputs: int = 1, inner_axis: int = 3) -> tuple[ModelBuilder, Tensor, Model]:
    """The builder, the inner concatenation, and the model of both."""
    b = ModelBuilder()
    parts = [b.input(f"x{number}", (1, 2, 2, 2)) for number in range(inner_inputs + outer_inputs)]
    inner = b.concat(parts[:inner_inputs], axis=inner_axis)
    others = [b.input(f"z{number}", inner.shape) for number in range(outer_inputs)]
    return b, inner, b.finish(b.concat((inner, *others)))


def test_ten_inputs_are_joined_and_eleven_are_not() -> None:
    model = two(5, 5)[2]
    Driver(model).apply_everywhere((NESTED_CONCATENATION,))
    assert [len(operator.inputs) for operator in model.main.operators] == [10]
    assert_refused(two(6, 5)[2], NESTED_CONCATENATION, "10")


def test_an_inner_one_that_others_need_stays() -> None:
    b, inner, model = two()
    model.main.outputs = (*model.main.outputs, inner)
    assert_refused(model, NESTED_CONCATENATION, "'concat0'")
    b, inner, model = two()
    model.main.outputs = (*model.main.outputs, b.add(inner, inner))
    assert_refused(model, NESTED_CONCATENATION, "'concat0'")


def test_an_inner_one_that_stays_does_not_keep_the_others_from_being_merged() -> None:
    b = ModelBuilder()
    inner = [b.concat([b.input(f"x{pair}{number}", (1, 2, 2, 2)) for number in (0, 1)]) for pair in (0, 1)]
    y = b.concat(inner)
    model = b.finish(y, inner[0])
    Driver(model).apply_everywhere((NESTED_CONCATENATION,))
    assert [len(operator.inputs) for operator in model.main.operators] == [2, 3]


def test_another_axis_activation_or_quantization_is_refused() -> None:
    assert_refused(two(inner_axis=2)[2], NESTED_CONCATENATION, "axis")
    _, inner, model = two()
    inner.quantization = ModelBuilder().tensor("like", (), scale=0.3).quantization
    assert_refused(model, NESTED_CONCATENATION, "quantizations")
    b, inner, _ = two()
    y = b.tensor("y", inner.shape)
    b.operator("CONCATENATION", (inner,), (y,), "ConcatenationOptions", axis=3, fusedActivationFunction=1)
    model = b.finish(y)
    model.main.remove_operator(model.main.operators[1])
    assert_refused(model, NESTED_CONCATENATION, "activation")
