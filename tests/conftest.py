"""What tests in several folders ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine for which there is no tflite-micro."""
    (tmp_path / "tflite_micro").mkdir()
    (tmp_path / "tflite_micro" / "__init__.py").write_text('raise ImportError("no such wheel")')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
