"""Fixtures of several folders, and the profile of Hypothesis."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests import interpreters, profiles
from tflite_memopt.evidence.equivalence import runner
from tflite_memopt.evidence.equivalence.runner import Interpreter

__all__ = ["profiles"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep as many cases of a test as its mark ``few`` says, spread evenly, and mark the others as slow."""
    for _, group in groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        cases = list(group)
        few = cases[0].get_closest_marker("few")
        if few is not None:
            kept = {at * len(cases) // few.args[0] for at in range(few.args[0])}
            for at, case in enumerate(cases):
                if at not in kept:
                    case.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def _kept_interpreters() -> Iterator[None]:
    with interpreters.kept():
        yield


@pytest.fixture
def own_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start and end processes as a run outside of the tests does."""
    monkeypatch.setattr(runner, "Interpreter", Interpreter)


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide tflite-micro, as on a machine for which it has no wheel."""
    (tmp_path / "tflite_micro").mkdir()
    (tmp_path / "tflite_micro" / "__init__.py").write_text('raise ImportError("no such wheel")')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))


@pytest.fixture
def mortal_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the process of tflite-micro end itself by a signal on a model of :func:`tests.interpreters.ending`.

    No test has a model that crashes an interpreter. Everything else runs on the wheel, which this module stands before.
    """
    (tmp_path / "tflite_micro").mkdir()
    (tmp_path / "tflite_micro" / "__init__.py").write_text(interpreters.MORTAL_WHEEL)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
