"""Any number of processes gives the same bytes and the same report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflite_memopt
from tests.cascade.networks import TYPES, random_network
from tests.cells import cell_network
from tests.equivalence.test_baseline import dilated_with_a_batch_of_one
from tests.faults import raises
from tests.models import mobile_chain
from tests.tflm import HAS_WHEEL
from tflite_memopt.batch.results import key_of
from tflite_memopt.errors import ErrorKind, UsageError
from tflite_memopt.evidence.equivalence import runner
from tflite_memopt.evidence.equivalence.subject import FailedVerificationError
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import Options
from tflite_memopt.report.model import to_json
from tflite_memopt.run import checking
from tflite_memopt.search.cascade import in_order, space
from tflite_memopt.search.rewrite import search, tiles
from tflite_memopt.solvers.graph.side_by_side import side_by_side
from tflite_memopt.solvers.schedule import contracted_orders

pytestmark = pytest.mark.usefixtures("own_interpreters")
ALONE = Options(samples=2, effort="quick")
MODELS: dict[str, Callable[[], Model]] = {
    "chain": lambda: mobile_chain(64),
    "cells": lambda: cell_network(3, cells=1),
    "integers": lambda: random_network(0, TYPES[0], 6, 24),
    "floats": lambda: random_network(1, TYPES[1], 6, 24),
}


def made(model: bytes, options: Options) -> tuple[bytes, str]:
    """The new file, and the report without its times."""
    result = tflite_memopt.optimize(model, options)
    report = json.loads(to_json(result.report))
    del report["timing"]
    return result.model, json.dumps(report)


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Everything that can be divided is, however little it is; names of what was."""
    found: set[str] = set()

    def noted(function: Callable[[Any], Any], items: Sequence[Any], jobs: int) -> list[Any]:
        if jobs > 1 and len(items) > 1:
            whole = getattr(function, "func", function)
            found.add(getattr(whole, "__name__", type(whole).__name__))
        return side_by_side(function, items, jobs)

    for module in (in_order, contracted_orders, space, search, tiles):
        monkeypatch.setattr(module, "side_by_side", noted)
        monkeypatch.setattr(module, "_MANY" if module is space else "_LEAST_AT_ONCE", 1)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_two_processes_give_what_one_gives(name: str, divided: set[str]) -> None:
    # In a tiny model calls dominate: stripes are beyond a narrow limit on run time.
    model, unproved = write_model(MODELS[name]()), replace(ALONE, verify=name == "chain", max_slowdown=0.5)
    assert made(model, replace(unproved, jobs=2)) == made(model, unproved)
    assert name != "chain" or divided >= {"Measure", "_planned", "_worked_out"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "cells"])
def test_two_processes_give_what_one_gives_for_a_target(name: str, divided: set[str]) -> None:
    """With the answer for any library."""
    model, unproved = write_model(MODELS[name]()), replace(ALONE, target="cortex-m4", verify=False)
    assert made(model, replace(unproved, jobs=2)) == made(model, unproved)
    assert divided


@pytest.mark.slow
def test_wrong_shapes_are_seen_with_two_processes() -> None:
    model, options = write_model(dilated_with_a_batch_of_one()), Options(samples=2)
    assert made(model, replace(options, jobs=2)) == made(model, options)


def test_wrong_inputs_are_refused_before_the_search(tmp_path: Path) -> None:
    np.savez(tmp_path / "wrong.npz", nobody=np.zeros(3, np.int8))
    with raises(UsageError, ErrorKind.SAMPLES, "'image'"):
        tflite_memopt.optimize(write_model(mobile_chain(32)), Options(jobs=2, inputs=tmp_path / "wrong.npz"))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[runner.Interpreter]:
    """List the interpreters that had a process, once for every process."""
    found: list[runner.Interpreter] = []
    start = runner.Interpreter._start

    def noted(self: runner.Interpreter) -> Any:
        found.append(self)
        return start(self)

    monkeypatch.setattr(runner.Interpreter, "_start", noted)
    return found


def all_gone(interpreters: list[runner.Interpreter]) -> bool:
    """Return whether there were some, and none of their processes is left."""
    return bool(interpreters) and all(each._process.poll() is not None for each in interpreters)


def raising(error: BaseException, at: str) -> Callable[[str], None]:
    """Progress that raises when something is said that begins so."""

    def progress(message: str) -> None:
        if message.startswith(at):
            raise error

    return progress


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_each_runtime_has_one_process_for_the_whole_run(jobs: int, started: list[runner.Interpreter]) -> None:
    tflite_memopt.optimize(write_model(mobile_chain(32)), replace(ALONE, jobs=jobs))
    assert sorted(each.runtime for each in started) == ["litert", "tflm"]
    assert all_gone(started)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["stripes", "ordering", "verifying"])
def test_an_interruption_ends_the_interpreters(stage: str, started: list[runner.Interpreter]) -> None:
    with pytest.raises(KeyboardInterrupt):
        tflite_memopt.optimize(
            write_model(mobile_chain(32)), replace(ALONE, jobs=2), raising(KeyboardInterrupt(), stage)
        )
    assert all_gone(started)


def test_an_error_before_the_proof_ends_the_interpreters(
    started: list[runner.Interpreter], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise ValueError("never proved")

    monkeypatch.setattr(checking, "worthy_candidate", failing)
    with pytest.raises(ValueError, match="never proved"):
        tflite_memopt.optimize(write_model(mobile_chain(32)), replace(ALONE, jobs=2))
    assert all_gone(started)


@pytest.mark.slow
def test_a_failed_proof_ends_the_interpreters(
    started: list[runner.Interpreter], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise FailedVerificationError("not equal: in every attempt")

    monkeypatch.setattr(checking, "verify_result", failing)
    with pytest.raises(FailedVerificationError):
        tflite_memopt.optimize(write_model(mobile_chain(32)), replace(ALONE, jobs=2))
    assert all_gone(started)


@pytest.mark.slow
def test_what_died_before_the_proof_is_started_anew(started: list[runner.Interpreter]) -> None:
    def kill(message: str) -> None:
        if message.startswith("verifying"):
            for each in started:
                each._process.kill()
                each._process.wait()

    model = write_model(mobile_chain(32))
    result = tflite_memopt.optimize(model, replace(ALONE, jobs=2), kill)
    verdicts = result.report.equivalence
    assert verdicts["litert"].equal
    assert verdicts["tflm"].equal or not HAS_WHEEL
    assert len(started) == 4  # one for each runtime, and another in its place
    assert all_gone(started)


def test_results_are_kept_under_the_same_key() -> None:
    assert key_of(Options(jobs=2)) == key_of(Options())
    assert key_of(Options(seed=1)) != key_of(Options())
