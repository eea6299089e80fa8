"""Concatenations of more inputs than TFLM takes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import ARENA, F32, I8, I16, LITERT, TFLM, Branch, assert_exact, assert_refused
from tests.tflm import run_models
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.search.rewrite.channels import LEGAL_CONCATENATION
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.stage import CLEAN_UP

GOLDEN = """graph 0 main
  %0 x0: int8[1, 1]
  %1 x1: int8[1, 1]
  %2 x2: int8[1, 1]
  %3 x3: int8[1, 1]
  %4 x4: int8[1, 1]
  %5 x5: int8[1, 1]
  %6 x6: int8[1, 1]
  %7 x7: int8[1, 1]
  %8 x8: int8[1, 1]
  %9 x9: int8[1, 1]
  %10 x10: int8[1, 1]
  %11 x11: int8[1, 1]
  %12 concat0: int8[1, 12]
  %13 concat0/joined: int8[1, 3]
  inputs %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11
  0: %13 = CONCATENATION(%0, %1, %2) {axis=-1}
  1: %12 = CONCATENATION(%13, %3, %4, %5, %6, %7, %8, %9, %10, %11) {axis=-1}
  outputs %12
"""


def joined(count: int) -> Model:
    b = ModelBuilder()
    return b.finish(b.concat([b.input(f"x{number}", (1, 1)) for number in range(count)], axis=-1))


def many(branch: Branch) -> None:
    """Eleven inputs and more, of any size along the axis, some of them twice and some constant."""
    pick = branch.random
    dtype = pick.choice((F32, I8, I16))
    axis, quantization = pick.randint(0, 2), branch.quantization(dtype)
    parts: list[Tensor] = []
    for _ in range(pick.randint(11, 30)):
        shape = [2, 3, 2]
        shape[axis] = pick.randint(1, 4)
        part = branch.input(shape, dtype, **quantization) if pick.random() < 0.7 or not parts else pick.choice(parts)
        if pick.random() < 0.1:
            part = branch.constant(branch.values(shape, dtype), part.quantization)
        parts.append(part)
    shape = [2, 3, 2]
    shape[axis] = sum(part.shape[axis] for part in parts)
    y = branch.tensor(shape, dtype, **quantization)
    branch.run("CONCATENATION", parts, y, "ConcatenationOptions", axis=pick.choice((axis, axis - 3)))


def test_the_same_bits() -> None:
    """On LiteRT alone: TFLM refuses the original."""
    assert_exact(LEGAL_CONCATENATION, many, 1, 25, (LITERT,))


def test_tflm_refuses_the_original_and_gives_litert_s_result_after() -> None:
    model = joined(25)
    original = write_model(model)
    Driver(model).apply_everywhere((LEGAL_CONCATENATION,))
    rewritten = write_model(model)
    samples = seeded_inputs(read_model(original), 3, 0)
    reference = run_models(LITERT, {"model": original}, samples, ARENA)["model"]
    runs = run_models(TFLM, {"original": original, "rewritten": rewritten}, samples, ARENA)
    assert not runs["original"].ran
    assert runs["rewritten"].ran
    for key, expected in reference.arrays.items():
        assert np.array_equal(runs["rewritten"].arrays[key], expected)


@pytest.mark.parametrize(("count", "operators"), [(10, 1), (11, 2), (19, 2), (20, 3), (25, 3), (100, 11), (101, 12)])
def test_as_few_operators_as_can_be_of_at_most_ten_inputs(count: int, operators: int) -> None:
    model = joined(count)
    Driver(model).apply_everywhere((LEGAL_CONCATENATION,))
    assert len(model.main.operators) == operators == 1 + -(-(count - 10) // 9)
    assert max(len(operator.inputs) for operator in model.main.operators) <= 10


def test_no_other_rule_undoes_it() -> None:
    model = joined(150)
    Driver(model).apply_everywhere((LEGAL_CONCATENATION, *CLEAN_UP))
    assert max(len(operator.inputs) for operator in model.main.operators) == 10


def test_the_golden_dump() -> None:
    model = joined(12)
    Driver(model).apply_everywhere((LEGAL_CONCATENATION,))
    assert dump_model(model) == GOLDEN


def test_refusals() -> None:
    b = ModelBuilder()
    y = b.tensor("y", (1, 11))
    parts = [b.input(f"x{number}", (1, 1)) for number in range(11)]
    b.operator("CONCATENATION", parts, (y,), "ConcatenationOptions", axis=1, fusedActivationFunction=1)
    assert_refused(b.finish(y), LEGAL_CONCATENATION, "activation")
    model = joined(11)
    model.main.set_input(model.main.operators[0], 3, None)
    assert_refused(model, LEGAL_CONCATENATION, "inputs")
