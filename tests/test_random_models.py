"""Random small networks under every planner: TFLM executes the plan and computes the same bytes."""

from __future__ import annotations

import random

import pytest

import tflite_memopt
from tflite_memopt import Options
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import ModelBuilder
from tflite_memopt.ir.model import Model
from tflite_memopt.plan.methods import NAMES


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


@pytest.mark.parametrize("seed", range(12))
def test_the_plan_computes_the_same_and_takes_what_it_says(seed: int) -> None:
    planner = NAMES[seed % len(NAMES)]
    options = Options(planner=planner, runtimes=("tflm",), samples=3)
    report = tflite_memopt.optimize(write_model(random_model(seed)), options).report
    assert report.equivalence["tflm"].equal
    assert report.after.tflm["head"] == report.after.arena_bytes
    assert report.before.tflm["head"] == report.before.arena_bytes
    assert report.after.tflm["tail"] == report.after.tail_bytes["64"]
