"""Options of operators that both models hold as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scripts.makers.model_builder import ModelBuilder
from tests.models import ALL, branches, if_model, mobile_chain, split_model
from tflite_memopt import EquivalenceError, Options, optimize, verify
from tflite_memopt.equivalence.failure import Subject
from tflite_memopt.equivalence.static_diff import first_stored_difference
from tflite_memopt.equivalence.verification import verify_result
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Model, Operator, OperatorOptions

OPTIONS = Options(samples=2, runtimes=("litert",))


def changed(operator: Operator, **fields: Any) -> None:
    assert operator.options is not None
    operator.options = OperatorOptions(operator.options.kind, {**operator.options.fields, **fields})


def custom_model(data: bytes) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 8))
    y = b.tensor("y", (1, 8))
    operator = b.operator("CUSTOM", (x,), (y,))
    operator.opcode = replace(operator.opcode, custom_code="Mine")
    operator.custom_options = np.frombuffer(data, np.uint8)
    return b.finish(y)


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_the_same_model_has_no_difference(make: Any) -> None:
    assert first_stored_difference(make(), make(), {}) is None


@pytest.mark.parametrize(
    ("make", "step", "fields", "said"),
    [
        (mobile_chain, 0, {"padding": 1}, "operator 0 CONV_2D 'conv0': option padding is 1, in the original 0"),
        (mobile_chain, 1, {"depthMultiplier": 2}, "option depthMultiplier is 2, in the original"),
        (branches, 3, {"potScaleInt16": False}, "option potScaleInt16 is False, in the original"),
        (split_model, 0, {"numSplits": 4}, "option numSplits is 4, in the original 3"),
    ],
)
def test_an_option_that_differs_is_named(make: Any, step: int, fields: Mapping[str, Any], said: str) -> None:
    other = make()
    changed(other.main.operators[step], **fields)
    assert said in (first_stored_difference(make(), other, {}) or "")


def test_inner_graphs_and_custom_options_are_looked_at() -> None:
    other = if_model()
    changed(other.graphs[1].operators[2], fusedActivationFunction=1)
    assert (first_stored_difference(if_model(), other, {}) or "").startswith("subgraph 1: operator 2 ADD")
    assert first_stored_difference(custom_model(b"12"), custom_model(b"12"), {}) is None
    assert "2 bytes, of which the first are 3133" in (
        first_stored_difference(custom_model(b"12"), custom_model(b"13"), {}) or ""
    )


def test_an_operator_with_another_operand_is_a_rewrites_work() -> None:
    other = mobile_chain()
    first, second = other.main.operators[:2]
    assert first.outputs[0] is second.inputs[0]
    second.outputs[0].name += "/other"
    changed(second, padding=1)
    assert first_stored_difference(mobile_chain(), other, {}) is None


def test_an_option_that_no_output_shows_is_no_longer_equal() -> None:
    """LiteRT's ADD of int8 does not look at it."""
    original, other = write_model(branches()), branches()
    changed(other.main.operators[3], potScaleInt16=False)
    with pytest.raises(EquivalenceError, match=r"not equal: operator 3 ADD .*: option potScaleInt16 is False"):
        verify_result(Subject(original, original, write_model(other)), OPTIONS, lambda _: None)
    found = verify(original, write_model(other), OPTIONS)
    assert (found["litert"].equal, found["file"].equal) == (True, False)


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_what_is_optimized_keeps_its_options(make: Any) -> None:
    data = write_model(make())
    result = optimize(data, Options(verify=False, objective="head"))
    assert first_stored_difference(read_model(data), read_model(result.model), {}) is None
