"""No command opens a connection, nor does what it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models import dense_model, mobile_chain
from tflite_memopt.model.io.writer import write_model

HERE = Path(__file__).parent
QUICK = ("--effort", "quick")
COMMANDS = (
    ("optimize", "m.tflite", "-o", "small.tflite", *QUICK, "--report", "r.json", "--report", "r.html"),
    ("analyze", "small.tflite", "--report", "a.svg"),
    ("verify", "m.tflite", "small.tflite", "--samples", "2"),
    ("compare", "m.tflite"),
    ("codegen", "small.tflite", "-o", "firmware"),
    ("explore", "d.tflite", *QUICK),
    ("check", "."),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.tflite").write_bytes(write_model(mobile_chain(12)))
    (tmp_path / "d.tflite").write_bytes(write_model(dense_model()))
    return tmp_path


def run(folder: Path, command: tuple[str, ...], before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(HERE), "TFLITE_MEMOPT_NO_NETWORK": str(folder / "asked.txt")}
    words = [*before, sys.executable, *command]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_what_asks_for_the_network_is_seen(folder: Path) -> None:
    """Else the next test could not fail."""
    done = run(folder, ("-c", "import socket; socket.create_connection(('127.0.0.1', 9))"))
    assert "allows no network" in done.stderr
    assert "127.0.0.1" in (folder / "asked.txt").read_text()


@pytest.mark.slow
def test_no_command_asks_for_the_network(folder: Path) -> None:
    for command in COMMANDS:
        done = run(folder, ("-m", "tflite_memopt", *command))
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert not (folder / "asked.txt").exists()


@pytest.mark.slow
def test_it_works_where_the_system_has_no_network(folder: Path) -> None:
    """In a network namespace without a way out, so that libraries in other languages have none either."""
    alone = ("unshare", "--net")
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    done = run(folder, ("-m", "tflite_memopt", *COMMANDS[0]), alone)
    assert done.returncode == 0, done.stderr
