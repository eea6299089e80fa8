"""Random small networks under every planner: TFLM executes the plan and computes the same bytes."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tflite_memopt
from tests.model_builder import ModelBuilder
from tflite_memopt import Options
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.solvers.plan.methods import NAMES


def random_model(seed: int) -> Model:
    """Ten operators on 8 x 8 maps: convolutions, sums and concats of any earlier tensors, several outputs."""
    rng = random.Random(seed)
    b = ModelBuilder()
    tensors = [b.input("x", (1, 8, 8, 4)), b.input("z", (1, 8, 8, 4))]
    for number in range(10):
        x, other = rng.choice(tensors), rng.choice(tensors)
        kind = rng.randrange(4)
        if kind == 0 and x.shape == other.shape:
            tensors.append(b.add(x, other))
        elif kind == 1 and x.shape[3] + other.shape[3] <= 24:
            tensors.append(b.concat((x, other)))
        elif kind == 2:
            tensors.append(b.depthwise(x, seed=number))
        else:
            tensors.append(b.conv(x, rng.choice((4, 8)), kernel=rng.choice((1, 3)), seed=number))
    unread = [tensor for tensor in tensors[2:] if not tensor.uses]
    return b.finish(*unread[:3])


def random_rows(seed: int) -> Model:
    """Fourteen operators that views, in-place and overlap apply to, on maps of 16 channels, in any wiring."""
    rng = random.Random(seed)
    b = ModelBuilder()
    tensors = [b.input("x", (1, 8, 6, 16)), b.input("z", (1, 4, 6, 16))]
    for number in range(14):
        x, other = rng.choice(tensors[-5:]), rng.choice(tensors)
        tensors += _row_operator(b, rng.randrange(9), number, x, other)
    # Some that others read are outputs too: they must keep their bytes to the end.
    returned = [tensor for tensor in tensors[2:] if not tensor.uses or rng.random() < 0.15]
    return b.finish(*returned)


def _row_operator(b: ModelBuilder, kind: int, number: int, x: Tensor, other: Tensor) -> list[Tensor]:
    if kind == 0 and x.shape == other.shape:
        return [b.add(x, other)]
    if kind == 1 and x.shape[2:] == other.shape[2:] and x.shape[1] + other.shape[1] <= 24:
        return [b.concat((x, other), axis=1)]
    if kind == 2 and x.shape[1] % 2 == 0:
        halves = [b.tensor(f"half{number}_{n}", (1, x.shape[1] // 2, *x.shape[2:])) for n in range(2)]
        axis = b.constant(f"axis{number}", np.asarray(1, np.int32))
        b.operator("SPLIT", (axis, x), halves, "SplitOptions", numSplits=2)
        return halves
    if kind == 3:
        return [b.reshape(x, x.shape)]
    if kind == 4:
        padded = b.tensor(f"pad{number}", (1, x.shape[1] + 2, x.shape[2], 16))
        paddings = np.asarray([[0, 0], [1, 1], [0, 0], [0, 0]], np.int32)
        b.operator("PAD", (x, b.constant(f"paddings{number}", paddings)), (padded,), "PadOptions")
        return [padded]
    if kind == 5:
        y = b.tensor(f"relu{number}", x.shape)
        b.operator("RELU", (x,), (y,))
        return [y]
    if kind == 6 and x.shape[1] > 2:
        cut = b.tensor(f"cut{number}", (1, x.shape[1] - 2, *x.shape[2:]))
        operands = [np.asarray(values, np.int32) for values in ((0, 1, 0, 0), cut.shape)]
        named = [b.constant(f"cut{number}_{n}", values) for n, values in enumerate(operands)]
        b.operator("SLICE", (x, *named), (cut,), "SliceOptions")
        return [cut]
    if kind == 7:
        return [b.depthwise(x, seed=number)]
    return [b.conv(x, 16, kernel=3, seed=number)]


@pytest.mark.slow
@pytest.mark.parametrize("kernels", list(PROFILES))
@pytest.mark.parametrize("seed", range(12))
def test_shared_bytes_compute_the_same(seed: int, kernels: str) -> None:
    options = Options(kernels=kernels, cascade=False, runtimes=("tflm",), samples=3)
    report = tflite_memopt.optimize(write_model(random_rows(seed)), options).report
    assert report.equivalence["tflm"].equal
    assert report.after.arena_bytes <= report.before.arena_bytes
    assert report.after.tflm["head"] == report.after.arena_bytes or not PROFILES[kernels].in_wheel
    assert not any("please report" in warning for warning in report.warnings)


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(12))
def test_the_plan_computes_the_same_and_takes_what_it_says(seed: int) -> None:
    planner = NAMES[seed % len(NAMES)]
    options = Options(planner=planner, cascade=False, runtimes=("tflm",), samples=3)
    report = tflite_memopt.optimize(write_model(random_model(seed)), options).report
    assert report.equivalence["tflm"].equal
    assert report.after.tflm["head"] == report.after.arena_bytes
    assert report.before.tflm["head"] == report.before.arena_bytes
    assert report.after.tflm["tail"] == report.after.tail_bytes[str(report.after.tflm.get("pointer_bits", 64))]
