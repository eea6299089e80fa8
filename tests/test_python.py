"""Use the package from Python: save a result, look at it, take the functions from the top."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import tflite_memopt
from tests.faults import raises
from tests.models import mobile_chain
from tflite_memopt import Options, UsageError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.run.pipeline import Result


@pytest.fixture(scope="module")
def result() -> Result:
    return tflite_memopt.optimize(write_model(mobile_chain()), Options(verify=False, cascade=False))


def test_a_result_shows_itself_in_a_line(result: Result) -> None:
    shown = repr(result)
    assert f"{len(result.model):,} bytes" in shown
    assert result.report.summary.headline in shown
    assert len(shown) < 400


def test_a_result_is_saved_and_replaces_nothing_unasked(result: Result, tmp_path: Path) -> None:
    target = tmp_path / "small.tflite"
    result.save(target)
    assert target.read_bytes() == result.model
    target.write_bytes(b"mine")
    with raises(UsageError, ErrorKind.EXISTS, str(target)):
        result.save(str(target))
    assert target.read_bytes() == b"mine"
    result.save(target, force=True)
    assert target.read_bytes() == result.model
    with raises(UsageError, ErrorKind.NOT_WRITABLE, "absent"):
        result.save(tmp_path / "absent" / "small.tflite")
    assert [path.name for path in tmp_path.iterdir()] == ["small.tflite"]


def test_a_run_leaves_the_garbage_collector_of_its_caller_alone() -> None:
    before, seen = gc.get_threshold(), set()
    options = Options(verify=False, cascade=False)
    tflite_memopt.optimize(write_model(mobile_chain()), options, lambda _: seen.add(gc.get_threshold()))
    assert seen == {before}


def test_what_is_at_the_top_is_what_its_home_has() -> None:
    from tflite_memopt.run import explore as exploring
    from tflite_memopt.run import pipeline

    assert tflite_memopt.explore is exploring.explore
    assert tflite_memopt.optimize is pipeline.optimize
    assert all(getattr(tflite_memopt, name) is not None for name in tflite_memopt.__all__)
