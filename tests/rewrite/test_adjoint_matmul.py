"""A matrix that is transposed for a BATCH_MATMUL: the kernel keeps no copy of it any longer."""

from __future__ import annotations

import numpy as np

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, Branch, assert_exact, quantization_of
from tflite_memopt.kernels.profiles import PORTABLE
from tflite_memopt.memory.reserve import reserve
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.operators.requests import ILP32
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.folding import ADJOINT_MATMUL
from tflite_memopt.search.rewrite.shapes import DEAD_OPERATORS, IDENTITY

RIGHT, LEFT = ADJOINT_MATMUL


def product(branch: Branch, slot: int) -> None:
    """One side comes from a TRANSPOSE, of any order, with a flag that makes the kernel transpose it again."""
    pick = branch.random
    dtype = pick.choice((F32, I8))
    batch, sizes = [pick.randint(1, 3) for _ in range(pick.choice((1, 2)))], [pick.randint(1, 6) for _ in range(3)]
    rows, depth, columns = sizes
    shapes = [[*batch, depth, rows] if slot == 0 else [*batch, rows, depth], [*batch, depth, columns]]
    order = list(range(len(shapes[slot])))
    pick.shuffle(order)
    given = [0] * len(order)
    for at, axis in enumerate(order):
        given[axis] = shapes[slot][at]
    x = branch.input(given, dtype, **branch.quantization(dtype))
    turned = branch.tensor(shapes[slot], dtype, **quantization_of(x))
    branch.builder.operator("TRANSPOSE", (x, branch.ints(*order)), (turned,), "TransposeOptions")
    other = branch.input(shapes[1 - slot], dtype, **branch.quantization(dtype))
    y = branch.tensor((*batch, rows, columns), dtype, **branch.quantization(dtype))
    sides = (turned, other) if slot == 0 else (other, turned)
    branch.run("BATCH_MATMUL", sides, y, "BatchMatMulOptions", adjX=slot == 0, adjY=False)


def test_the_same_bits_of_either_side() -> None:
    assert_exact(RIGHT, lambda branch: product(branch, 1), 1, 40)
    assert_exact(LEFT, lambda branch: product(branch, 0), 2, 40)


def attention(is_read: bool = False, order: tuple[int, ...] = (0, 2, 3, 1)) -> Model:
    """(1, 8 tokens, 2 heads, 4) times itself, as the converter writes it."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 2, 4))
    left, right = b.tensor("left", (1, 2, 8, 4)), b.tensor("right", (1, 2, 4, 8))
    for made, chosen in ((left, (0, 2, 1, 3)), (right, order)):
        said = b.constant(f"{made.name}/order", np.asarray(chosen, np.int32))
        b.operator("TRANSPOSE", (x, said), (made,), "TransposeOptions")
    y = b.tensor("y", (1, 2, 8, 8))
    b.operator("BATCH_MATMUL", (left, right), (y,), "BatchMatMulOptions", adjX=False, adjY=False)
    return b.finish(*([y, b.softmax(right)] if is_read else [y]))


def tail(model: Model) -> int:
    return reserve(model, 0, PORTABLE, abi=ILP32).tail


def test_the_copy_in_the_tail_goes() -> None:
    model = attention()
    before, copied = tail(model), model.main.operators[-1].inputs[1]
    assert copied is not None
    Driver(model).apply_everywhere((RIGHT, DEAD_OPERATORS))
    assert before - tail(model) >= copied.nbytes
    turned = model.main.operators[-1].inputs[1]
    assert isinstance(turned, Tensor)
    assert turned.shape == (1, 2, 8, 4)
    assert write_model(model)


def test_what_was_transposed_for_the_kernel_alone_is_read_as_it_is() -> None:
    b = ModelBuilder()
    x, other = b.input("x", (1, 2, 8, 4)), b.input("other", (1, 2, 3, 4))
    turned, y = b.tensor("turned", (1, 2, 4, 8)), b.tensor("y", (1, 2, 3, 8))
    said = b.constant("order", np.asarray((0, 1, 3, 2), np.int32))
    b.operator("TRANSPOSE", (x, said), (turned,), "TransposeOptions")
    b.operator("BATCH_MATMUL", (other, turned), (y,), "BatchMatMulOptions", adjX=False, adjY=False)
    model = b.finish(y)
    Driver(model).apply_everywhere((RIGHT, IDENTITY, DEAD_OPERATORS))
    (only,) = model.main.operators
    assert only.inputs == (other, x)
    assert only.option("adjY") is True


def test_a_matrix_that_others_read_is_left_alone() -> None:
    driver = Driver(attention(is_read=True))
    driver.apply_everywhere((RIGHT,))
    assert not driver.applied
    assert "others" in next(iter(driver.refused.values())).reason
