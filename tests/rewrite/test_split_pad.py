"""Concatenation + padding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite.patterns import F32, I8, I16, I32, Branch, assert_exact, quantization_of
from tflite_memopt.rewrite.rules.split_pad import SPLIT_PAD


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
    assert_exact(SPLIT_PAD, pad, seed, 100)
