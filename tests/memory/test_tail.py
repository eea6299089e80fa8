"""What the tail is made of: the parts are the whole, and each is what adding it costs."""

from __future__ import annotations

import pytest

from tests.models import irregular_model, mobile_chain
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.figures import tail_parts
from tflite_memopt.memory.reserve import reserve
from tflite_memopt.model.ir.model import Model


@pytest.mark.parametrize("kernels", PROFILES)
@pytest.mark.parametrize("model", [mobile_chain(), irregular_model()], ids=["chain", "irregular"])
def test_the_parts_are_the_whole(model: Model, kernels: str) -> None:
    profile = PROFILES[kernels]
    tail = reserve(model, 0, profile).tail
    parts = tail_parts(model, profile, tail)
    assert sum(part.bytes for part in parts) == tail
    assert [part.bytes for part in parts] == sorted((part.bytes for part in parts), reverse=True)
    by_name = {part.name: part for part in parts}
    assert by_name["structures of operators"].count == len(model.main.operators)
    assert by_name["structures of tensors"].count == len(model.main.tensors)
    kinds = {operator.opcode.label for operator in model.main.operators}
    assert {name.removeprefix("kernels of ") for name in by_name if name.startswith("kernels of ")} <= kinds
    assert by_name["kernels of CONV_2D"].bytes > 0
    assert by_name["allocator, inputs, outputs and alignment"].bytes > 0
