"""Concatenation + padding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    I32,
    Branch,
    assert_exact,
    assert_refused,
    quantization_of,
    refusals,
    rule_named,
)
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver

SPLIT_PAD = rule_named("split_pad")


def pad(branch: Branch) -> None:
    pick = branch.random
    name = pick.choice(("PAD", "PADV2", "MIRROR_PAD"))
    x = branch.concat(pick.choice((F32, I8)) if name == "MIRROR_PAD" else pick.choice((F32, I8, I16, I32)))
    most = 1 if name == "MIRROR_PAD" else 3
    amounts = [[0, 0] if name == "MIRROR_PAD" else [pick.choice((0, 0, 1)), 0]]
    amounts += [[pick.randint(0, most), pick.randint(0, most)] for _ in (1, 2)]
    paddings = np.asarray([*amounts, [0, 0]], np.int32)
    shape = [size + sum(pair) for size, pair in zip(x.shape, paddings.tolist(), strict=True)]
    inputs = [x, branch.constant(paddings)]
    if name == "PADV2":
        value = np.asarray(branch.values((1,), x.dtype)[0])
        inputs.append(branch.constant(value, x.quantization))
    kind, fields = ("MirrorPadOptions", {"mode": pick.choice((0, 1))}) if name == "MIRROR_PAD" else (None, {})
    branch.run(name, inputs, branch.tensor(shape, x.dtype, **quantization_of(x)), kind, **fields)


@pytest.mark.parametrize("seed", range(2))
def test_the_same_bits(seed: int) -> None:
    assert_exact(SPLIT_PAD, pad, seed, 60)


def padded(amounts: list[list[int]], *more: Tensor) -> Model:
    b = ModelBuilder()
    x = b.concat([b.input(f"x{count}", (1, 4, 4, count)) for count in (2, 3)])
    y = b.tensor("y", (1, 5, 4, 5))
    b.operator("PADV2" if more else "PAD", (x, b.constant("paddings", np.asarray(amounts, np.int32)), *more), (y,))
    b.graph.tensors += more
    return b.finish(y)


def test_refusals() -> None:
    ordinary = [[0, 0], [1, 0], [0, 0], [0, 0]]
    assert_refused(padded([*ordinary[:3], [0, 1]]), SPLIT_PAD, "channels")
    wrong = "its paddings are not constant, or not two for each dimension"
    assert refusals(padded(ordinary[:3]), SPLIT_PAD) == [wrong]
    value = ModelBuilder().constant("value", np.zeros(5, np.int8))
    assert_refused(padded(ordinary, value), SPLIT_PAD, "value")
    model = padded(ordinary)
    paddings = model.main.operators[1].inputs[1]
    assert paddings is not None
    paddings.buffer = model.buffers[0]
    model.main.inputs = (*model.main.inputs, paddings)
    assert refusals(model, SPLIT_PAD) == [wrong]


def test_the_paddings_stay_one_constant() -> None:
    model = padded([[0, 0], [1, 0], [0, 0], [0, 0]])
    Driver(model).apply_everywhere((SPLIT_PAD,))
    pads = [op for op in model.main.operators if op.name == "PAD"]
    assert [op.outputs[0].shape for op in pads] == [(1, 5, 4, 2), (1, 5, 4, 3)]
    assert pads[0].inputs[1] is pads[1].inputs[1]
