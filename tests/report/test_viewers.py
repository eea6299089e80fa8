"""What we write, opened in Netron and in Google's Model Explorer, in a real browser.

They are large, and in an environment of their own: TFLITE_MEMOPT_VIEWERS names its Python.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.models import mobile_chain
from tests.report.browser import installed_chromium
from tflite_memopt.cli import cli
from tflite_memopt.io.writer import write_model

SCRIPTS = Path(__file__).parents[2] / "scripts"
PYTHON = os.environ.get("TFLITE_MEMOPT_VIEWERS")
CHROMIUM = installed_chromium()
pytestmark = [
    pytest.mark.skipif(PYTHON is None, reason="TFLITE_MEMOPT_VIEWERS names no Python with the viewers"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]


def made(words: Sequence[str]) -> None:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output


def looked(script: str, *words: Path) -> str:
    command = [str(PYTHON), str(SCRIPTS / script), *map(str, words), str(CHROMIUM)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture
def optimized(tmp_path: Path) -> Path:
    (tmp_path / "model.tflite").write_bytes(write_model(mobile_chain()))
    path = tmp_path / "small.tflite"
    made(("optimize", str(tmp_path / "model.tflite"), "-o", str(path), "--no-cascade"))
    return path


def test_netron_shows_what_the_plan_was_made_for(optimized: Path) -> None:
    text = looked("look_in_netron.py", optimized)
    assert '"kernels": "portable"' in text
    assert "OfflineMemoryAllocation" in text


def test_model_explorer_shows_the_bytes_of_each_operator(optimized: Path, tmp_path: Path) -> None:
    folder = tmp_path / "explorer"
    made(("analyze", str(optimized), "--node-data", str(folder)))
    text = looked("look_in_model_explorer.py", optimized, folder)
    files = sorted(folder.glob("*.json"))
    assert files
    for file in files:
        assert file.stem in text
        values = re.findall(r'"value": ?([0-9]+)', file.read_text())
        assert values
        assert [value for value in values if value not in text.replace(",", "")] == [], file.name
