"""Fixtures of several folders, and the profile of Hypothesis."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import profiles

__all__ = ["profiles"]


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide tflite-micro, as on a machine for which it has no wheel."""
    (tmp_path / "tflite_micro").mkdir()
    (tmp_path / "tflite_micro" / "__init__.py").write_text('raise ImportError("no such wheel")')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
