"""Runners built from TFLM's sources: the host's and, under QEMU, Cortex-M's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from scripts.device_lab.builds import BUILDS
from scripts.device_lab.runs import run_external
from scripts.kernel_probes.probe import on_runner, probe
from scripts.kernel_probes.windows import CONV, DEPTHWISE, Window
from scripts.makers.model_builder import ModelBuilder
from tests.device.runners import HOST, QEMU, runner
from tests.models import (
    branches,
    concat_model,
    dense_model,
    if_model,
    mobile_chain,
    split_model,
    streaming_model,
    transpose_conv_model,
    while_model,
)
from tests.tflm import run_models
from tflite_memopt.equivalence.adapter import Array, Run, RunJob
from tflite_memopt.equivalence.external_runner import run_external_jobs
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize


def two_pictures() -> Model:
    """In an arena that is a little too small, TFLM writes over its own allocator, and calls through a null pointer."""
    b = ModelBuilder()
    return b.finish(b.depthwise(b.input("x", (2, 1, 1, 18)), kernel=3, stride=3, multiplier=3))


MODELS: Mapping[str, Model] = {
    "mobile_chain": mobile_chain(),
    "branches": branches(),
    "concat": concat_model(),
    "dense": dense_model(),
    "two_pictures": two_pictures(),
    "split": split_model(),
    "transpose_conv": transpose_conv_model(),
    "streaming": streaming_model(),
    "if": if_model(),
    "while": while_model(),
}
builds = pytest.mark.parametrize("name", BUILDS)


def same(first: Mapping[str, Array], second: Mapping[str, Array]) -> bool:
    return list(first) == list(second) and all(np.array_equal(first[key], second[key]) for key in first)


@cache
def jobs_of_all() -> dict[str, RunJob]:
    return {label: RunJob(write_model(model), seeded_inputs(model, 3, 1), 1 << 18) for label, model in MODELS.items()}


@cache
def on_the_wheel() -> dict[str, Run]:
    jobs = jobs_of_all()
    models, samples = ({label: getattr(job, of) for label, job in jobs.items()} for of in ("model", "samples"))
    return run_models("tflm", models, samples, 1 << 18)


@builds
def test_every_build_computes_what_the_wheel_computes(name: str) -> None:
    runs = run_external_jobs(runner(name), jobs_of_all())
    for label, run in runs.items():
        assert run.ran, (label, run.error)
        assert same(run.arrays, on_the_wheel()[label].arrays), label
        assert run.facts["pointer_bits"] == BUILDS[name].pointer_bits
        assert run.kernels == BUILDS[name].library
        assert "unknown" not in run.commit


@builds
def test_the_smallest_arena_is_enough_and_the_next_smaller_one_is_not(name: str) -> None:
    command = runner(name)
    for label, model in MODELS.items():
        data, samples = write_model(model), seeded_inputs(model, 2, 1)
        large = run_external(command, data, samples)
        assert large.facts["smallest_arena"]
        exact = run_external(command, data, samples, large.facts["smallest_arena"])
        assert same(exact.arrays, large.arrays), label
        assert (exact.facts["head"], exact.facts["tail"]) == (large.facts["head"], large.facts["tail"])
        assert not run_external(command, data, samples, large.facts["smallest_arena"] - 16).ran, label


@pytest.mark.parametrize("name", QEMU)
def test_instructions_are_counted_and_the_same_each_time(name: str) -> None:
    command, model = runner(name), mobile_chain()
    data, samples = write_model(model), seeded_inputs(model, 6, 1)
    counts = [run_external(command, data, samples[:n]).facts["instructions"] for n in (3, 3, 6)]
    assert counts[0] == counts[1]
    assert counts[2] == pytest.approx(2 * counts[0], rel=0.01)
    # A multiply-accumulate takes a few instructions, or a part of one with vectors.
    macs = 3 * 12 * 12 * 8 * 27
    assert macs / 16 < counts[0] < 400 * macs


@pytest.mark.parametrize("name", HOST)
def test_the_host_counts_no_instructions(name: str) -> None:
    model = dense_model()
    assert "instructions" not in run_external(runner(name), write_model(model), seeded_inputs(model, 1, 1)).facts


@builds
def test_what_a_runner_cannot_do_is_said_and_the_next_run_goes_on(name: str) -> None:
    model = dense_model()
    data, samples = write_model(model), seeded_inputs(model, 1, 1)
    jobs = {"tiny": RunJob(data, samples, 512), "huge": RunJob(data, samples, 1 << 30), "short": RunJob(data, [[]], 0)}
    runs = run_external_jobs(runner(name), {**jobs, "right": RunJob(data, samples, 0)})
    assert "AllocateTensors failed" in str(runs["tiny"].error)
    assert "no arena of that size" in str(runs["huge"].error)
    assert "too short" in str(runs["short"].error)
    assert runs["right"].ran


@builds
def test_a_plan_for_the_build_is_right_in_the_promised_arena_and_no_larger_than_stock(name: str) -> None:
    command, build = runner(name), BUILDS[name]
    heads = []
    for label in ("mobile_chain", "branches", "concat", "dense", "streaming", "split", "transpose_conv", "if", "while"):
        data, samples = write_model(MODELS[label]), seeded_inputs(MODELS[label], 3, 2)
        result = optimize(data, Options(target=build.target, kernels=build.profile, verify=False, cascade=False))
        after = result.report.after
        promised = after.required_bytes["target"]
        stock, ours = run_external(command, data, samples), run_external(command, result.model, samples, promised)
        assert same(stock.arrays, ours.arrays), (label, ours.error)
        assert ours.facts["head"] == after.arena_bytes, label
        assert stock.facts["smallest_arena"]
        assert ours.facts["smallest_arena"]
        assert ours.facts["smallest_arena"] <= promised, label
        assert ours.facts["smallest_arena"] <= stock.facts["smallest_arena"], label
        heads.append((ours.facts["head"], stock.facts["head"]))
    assert any(ours < stock for ours, stock in heads)


@pytest.mark.parametrize("name", ["host-cmsis-nn", "cortex-m3-cmsis-nn", "cortex-m7-cmsis-nn", "cortex-m55-cmsis-nn"])
def test_a_reference_plan_is_seen_to_be_wrong_on_cmsis_nn(name: str) -> None:
    """CMSIS-NN's 1x1 convolution writes ahead of what it reads; if this passes unseen, no comparison means a thing."""
    command = runner(name)
    model = Window(CONV, 16, 16, 16, 16, 1, 1).case.model()
    data, samples = write_model(model), seeded_inputs(model, 2, 2)
    result = optimize(data, Options(kernels="reference", verify=False, cascade=False))
    stock, ours = run_external(command, data, samples), run_external(command, result.model, samples)
    assert ours.ran
    assert ours.facts["head"] < stock.facts["head"]
    assert not same(stock.arrays, ours.arrays)


PROBED = [
    Window(CONV, 6, 6, 8, 16, 1, 1),
    Window(CONV, 7, 6, 8, 16, 3, 3),
    Window(CONV, 1, 20, 8, 12, 1, 5),
    Window(DEPTHWISE, 7, 6, 20, 20, 3, 3),
    Window(DEPTHWISE, 3, 3, 130, 130, 3, 3),
    Window(DEPTHWISE, 8, 8, 1, 8, 3, 3),
    Window("AVERAGE_POOL_2D", 7, 6, 20, 20, 3, 3),
    Window(CONV, 7, 6, 8, 16, 3, 3, dtype=DType.INT16),
    Window(CONV, 6, 6, 8, 16, 1, 1, dtype=DType.INT16),
    Window(DEPTHWISE, 7, 6, 20, 20, 3, 3, dtype=DType.INT16),
    Window("MAX_POOL_2D", 7, 6, 20, 20, 3, 3, dtype=DType.INT16, weights=DType.INT16),
    Window(CONV, 5, 5, 8, 8, 3, 3, batches=2),
    Window(CONV, 5, 5, 8, 8, 1, 1, batches=2),
    Window(DEPTHWISE, 5, 5, 8, 8, 3, 3, batches=3),
    Window("AVERAGE_POOL_2D", 5, 5, 8, 8, 3, 3, batches=2),
]


@builds
def test_no_rule_of_the_profile_is_below_what_the_kernels_need(name: str) -> None:
    command = runner(name)
    relations = profile_named(BUILDS[name].profile).relations
    for window in PROBED:
        for found in probe(window.case, relations, on_runner(command)):
            assert found.exercised, found
            assert not found.error, found
            assert found.is_safe, found
