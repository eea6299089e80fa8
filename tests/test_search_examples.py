"""The examples of docs/examples/search run, at a small size, each in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "examples" / "search"
_LAST = re.compile(r"([\d.]+) in ([\d,]+) bytes: \{.*'width': \d+.*\}|\[\d+, \d+, \d+\]: ([\d,]+) bytes, ([\d.]+)")


def last_of(name: str, packages: str, folder: Path, *words: str) -> tuple[float, int]:
    """Run an example; return accuracy and bytes of its last line."""
    for package in packages.split():
        if find_spec(package) is None:
            pytest.skip(f"not installed: {package}")
    environment = os.environ | {"XDG_CACHE_HOME": str(folder), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, str(FOLDER / f"{name}.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    found = _LAST.fullmatch(done.stdout.splitlines()[-1])
    assert found is not None, done.stdout
    accuracy, nbytes = (found[1], found[2]) if found[1] else (found[4], found[3])
    return float(accuracy), int(nbytes.replace(",", ""))


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("name", "packages", "ram"),
    [
        ("optuna_keras", "keras optuna sklearn", 12_000),
        ("keras_tuner_ram", "keras_tuner tensorboard sklearn", 12_000),
        ("prune_until_it_fits", "keras sklearn", 12_000),
    ],
)
def test_what_keras_finds_fits_the_ram(name: str, packages: str, ram: int, tmp_path: Path) -> None:
    trials = () if name == "prune_until_it_fits" else ("--trials", "3")
    accuracy, nbytes = last_of(name, f"{packages} tensorflow", tmp_path, "--ram", str(ram), "--epochs", "2", *trials)
    assert 0 < nbytes <= ram
    assert accuracy > 0.15  # chance is 0.1
    assert (tmp_path / "tflite_memopt" / "costs.sqlite").exists()


@pytest.mark.slow
@pytest.mark.torch
def test_pytorch_finds_networks_of_two_objectives(tmp_path: Path) -> None:
    packages = "torch litert_torch optuna sklearn"
    accuracy, nbytes = last_of("optuna_torch", packages, tmp_path, "--epochs", "2", "--trials", "3")
    assert accuracy > 0.15
    assert 4_000 < nbytes < 32_000
