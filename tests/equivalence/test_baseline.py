"""The original is looked at first: who can run it, with which kernels, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.models import dense_model, mobile_chain, streaming_model
from tests.tflm import litert_and_tflm
from tflite_memopt.evidence.equivalence.adapter import ModelRun, RunJob
from tflite_memopt.evidence.equivalence.baseline import Baseline, measure_baseline
from tflite_memopt.evidence.equivalence.runner import Interpreters
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.options import Options


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with litert_and_tflm() as found:
        yield found


def looked_at(model: Model, interpreters: Interpreters, **options: object) -> Baseline:
    data = write_model(model)
    return measure_baseline(data, read_model(data), Options(samples=4, **options), interpreters)  # type: ignore[arg-type]


def dilated_with_a_batch_of_one() -> Model:
    """What a converter leaves of a dilated convolution: the blocks' batch is 1 in the file, and must be 4."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 2))
    block = b.constant("block", np.asarray([2, 2], np.int32))
    zeros = b.constant("zeros", np.zeros((2, 2), np.int32))
    blocks = b.tensor("blocks", (1, 4, 4, 2))
    b.operator("SPACE_TO_BATCH_ND", (x, block, zeros), (blocks,), "SpaceToBatchNDOptions")
    y = b.tensor("y", (1, 8, 8, 2))
    b.operator("BATCH_TO_SPACE_ND", (b.depthwise(blocks, seed=1), block, zeros), (y,), "BatchToSpaceNDOptions")
    return b.finish(y)


def test_a_wrong_static_shape_is_named_with_its_operator(interpreters: Interpreters) -> None:
    found = looked_at(dilated_with_a_batch_of_one(), interpreters)
    assert found.findings
    assert "TFLM computes this model wrongly from subgraph 0, operator 0 (SPACE" in found.findings[0]
    assert "the file says shape [1, 4, 4, 2], its operands give [4, 4, 4, 2]" in found.findings[0]


def test_outputs_that_depend_on_what_the_arena_held_are_a_finding(interpreters: Interpreters) -> None:
    b = ModelBuilder()
    y = b.add(*[b.input("x", (1, 16))] * 2)
    unwritten = b.tensor("unwritten", (1, 16))
    found = looked_at(b.finish(y, unwritten), interpreters, runtimes=("tflm",))
    assert not found.runs["tflm"].is_sound
    assert "does not compute the same outputs twice" in found.findings[0]


@pytest.mark.parametrize("make", [mobile_chain, streaming_model, dense_model])
def test_sound_models_have_no_findings(make: object, interpreters: Interpreters) -> None:
    assert callable(make)
    found = looked_at(make(), interpreters)
    assert found.findings == ()
    assert all(ground.run is not None and ground.is_sound for ground in found.runs.values())


def test_where_reference_kernels_fail_the_optimized_ones_are_tried_and_named(interpreters: Interpreters) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4), DType.INT8)
    y = b.tensor("y", (1, 8))
    times = b.constant("times", np.asarray([1, 2], np.int32))
    b.operator("TILE", (x, times), (y,), "TileOptions").opcode.version = 3
    ground = looked_at(b.finish(y), interpreters).runs["litert"]
    assert ground.run is not None
    assert ground.kernels == "optimized kernels"
    assert "its reference kernels fail: Didn't find op for builtin opcode 'TILE' version '3'" in (ground.reason or "")


def test_a_model_that_nothing_runs_has_reasons(interpreters: Interpreters) -> None:
    model = dense_model()
    model.opcodes[0].version = 99
    found = looked_at(model, interpreters, runtimes=("litert",))
    assert {name: ground.run for name, ground in found.runs.items()} == {"litert": None}
    assert all("FULLY_CONNECTED" in (ground.reason or "") for ground in found.runs.values())
    assert found.samples == []


class NotAsked:
    """A TFLM that nobody may ask."""

    def run(self, job: RunJob) -> ModelRun:
        raise AssertionError(f"TFLM was given a model that it cannot run, of {len(job.model)} bytes")

    def close(self) -> None:
        pass


def test_what_tflm_cannot_run_is_not_given_to_it(interpreters: Interpreters) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4), DType.INT8)
    y = b.tensor("y", (1, 4), DType.INT8)
    b.operator("GELU", (x,), (y,), "GeluOptions")
    running = {"litert": interpreters["litert"], "tflm": NotAsked()}
    found = looked_at(b.finish(y), cast(Interpreters, running)).runs["tflm"]
    assert (found.run, found.refused) == (None, True)
    assert "operator 0 GELU 'y'" in (found.reason or "")
