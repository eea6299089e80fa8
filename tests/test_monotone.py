"""The search keeps its word: a wider limit, more effort, and a budget that is missed never give more bytes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cells import cell_network
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, Report, explore, optimize
from tflite_memopt.memory.work import slowest
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import EFFORTS
from tflite_memopt.run.attempts import LIMITS
from tflite_memopt.run.candidate import Cache

OPTIONS = Options(target="cortex-m4", verify=False)
_FOLDER = os.environ.get("TFLITE_MEMOPT_MODELS", "")
_FIVE = ("mlperf_kws_int8", "mww_okay_nabu_v2", "tflm_lstm_int8", "tflm_micro_speech", "tflm_dtln")


def images(seed: int) -> Model:
    """A few layers on an image, some with strides and sums."""
    draw, b = random.Random(seed), ModelBuilder()
    side = draw.choice([12, 16, 20, 24])
    x = b.input("x", (1, side, side, draw.choice([1, 3, 4])))
    for at in range(draw.randint(3, 6)):
        kind = draw.choice(["1x1", "3x3", "strided", "depthwise", "sum"])
        if kind == "depthwise":
            x = b.depthwise(x, kernel=3, stride=draw.choice([1, 2]), seed=at)
        elif kind == "sum":
            x = b.add(x, b.conv(x, x.shape[3], kernel=3, seed=at))
        else:
            stride = 2 if kind == "strided" else 1
            x = b.conv(x, draw.choice([4, 8, 16]), kernel=1 if kind == "1x1" else 3, stride=stride, seed=at)
    return b.finish(b.dense(b.reshape(x, (1, x.elements)), 4))


NETWORKS = [write_model(make(seed)) for make in (images, cell_network) for seed in range(4)]
FILES = [path for name in _FIVE if (path := Path(_FOLDER, f"{name}.tflite")).is_file()] if _FOLDER else []
models = pytest.mark.parametrize(
    "data",
    [
        *(
            pytest.param(data, id=f"network{at}", marks=[pytest.mark.slow] if at else [])
            for at, data in enumerate(NETWORKS)
        ),
        *(pytest.param(path.read_bytes(), id=path.stem, marks=pytest.mark.corpus) for path in FILES),
    ],
)


def run(data: bytes, options: Options, cache: Cache) -> tuple[int, float]:
    return answer(optimize(data, options, cache=cache).report)


def answer(report: Report) -> tuple[int, float]:
    """Bytes to reserve, and the added run time."""
    return report.answer.reserve, slowest(report.before.instructions, report.after.instructions)


def by_limit(data: bytes, options: Options) -> Iterator[tuple[float, int, float]]:
    cache = Cache()
    for limit in sorted({0.03, *LIMITS}):
        yield limit, *run(data, replace(options, max_slowdown=limit), cache)


@pytest.mark.slow
@models
def test_more_effort_never_gives_more_bytes(data: bytes) -> None:
    needs = [run(data, replace(OPTIONS, effort=effort), Cache())[0] for effort in EFFORTS]
    assert needs == sorted(needs, reverse=True)


@pytest.mark.slow
@models
def test_a_budget_is_met_or_gives_no_more_bytes(data: bytes) -> None:
    need, _ = run(data, OPTIONS, Cache())
    for budget in (need, need - 16, need // 2):
        report = optimize(data, replace(OPTIONS, budget=budget)).report
        assert report.within_budget or report.answer.reserve <= need
        assert report.within_budget or budget < need


@pytest.mark.slow
@models
def test_a_wider_limit_never_gives_more_bytes_and_no_answer_beats_the_front(data: bytes) -> None:
    found = explore(data, replace(OPTIONS, every_byte=True)).exploration
    points = (found.before, *found.points)
    for every_byte in (False, True):
        answers = list(by_limit(data, replace(OPTIONS, every_byte=every_byte)))
        assert all(share <= limit + 1e-9 for limit, _, share in answers)
        assert all(narrow >= wide for (_, narrow, _), (_, wide, _) in pairwise(answers))
        for limit, need, share in answers:
            said = f"{limit}: {need} bytes at {share:+.3f}"
            assert any(point.total <= need and point.slowdown <= share + 5e-4 for point in points), said


@pytest.mark.slow
def test_where_the_best_set_makes_a_library_need_more_the_next_one_is_taken() -> None:
    """Of this network the loop that needs least leaves no place for the scratch of another library."""
    model = write_model(cell_network(56, width=12, resolution=12, cells=2, nodes=2))
    options = Options(verify=False, effort="quick")
    wide, narrow = (optimize(model, replace(options, max_slowdown=limit)).report for limit in (0.3, 0.25))
    assert "masked" in wide.decision
    assert wide.after.required_for_target <= narrow.after.required_for_target
