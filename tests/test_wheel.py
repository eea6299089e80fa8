"""The wheel and the source archive hold the package, whole, and nothing else; the suite tests the installed copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

import tflite_memopt

ROOT = Path(__file__).parent.parent
PACKAGE = "tflite_memopt/"
BUILD = """
import sys
from setuptools import build_meta
print(build_meta.build_sdist(sys.argv[1]) if sys.argv[2] == "sdist" else build_meta.build_wheel(sys.argv[1]))
"""


def tracked() -> set[str]:
    """Return the files that git knows."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no clone: git knows no files")
    return {path for path in done.stdout.split("\0") if path and (ROOT / path).exists()}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the tracked files: a stale ``build/`` of the checkout would add its own to the wheel."""
    folder = tmp_path_factory.mktemp("clone")
    for path in tracked():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    return folder


def built(clone: Path, kind: str) -> Path:
    """Build one archive, without compiled copies, and return its path."""
    environment = os.environ | {"TFLITE_MEMOPT_PLANNERS": "python", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", BUILD, "dist", kind]
    done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return clone / "dist" / done.stdout.split()[-1]


def of_the_package(paths: set[str]) -> set[str]:
    return {path for path in paths if path.startswith(PACKAGE)}


def test_the_wheel_holds_the_package_and_nothing_else(clone: Path) -> None:
    with ZipFile(built(clone, "wheel")) as archive:
        held = {path for path in archive.namelist() if ".dist-info/" not in path}
    assert held == of_the_package(tracked())


@pytest.mark.slow
def test_the_source_archive_holds_all_that_the_wheel_is_built_of(clone: Path) -> None:
    with tarfile.open(built(clone, "sdist")) as archive:
        held = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert of_the_package(held) == of_the_package(tracked())
    assert {"setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"} <= held


@pytest.mark.slow
def test_the_same_tree_gives_the_same_wheel_and_metadata_that_pypi_takes(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = shutil.copy(built(clone, "wheel"), tmp_path)
    other = tmp_path / "another place"
    shutil.copytree(clone, other, ignore=shutil.ignore_patterns("dist", "build", "*.egg-info"))
    for path in other.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    assert built(other, "wheel").read_bytes() == Path(first).read_bytes()
    if shutil.which("twine") is None:
        pytest.skip("not installed: twine (.ci/run installs it)")
    command = ["twine", "check", "--strict", str(first), str(built(clone, "sdist"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with ZipFile(first) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("METADATA"))
        metadata = archive.read(name).decode()
    assert "Development Status :: 4 - Beta" in metadata
    assert f"\nVersion: {tflite_memopt.__version__}\n" in metadata
    assert "b" in tflite_memopt.__version__


def test_the_suite_tests_the_installed_copy() -> None:
    """Fail when the checkout's package is imported: it may hold files that no wheel has."""
    origin = distribution("tflite-memopt").read_text("direct_url.json") or ""
    if os.environ.get("TFLITE_MEMOPT_EDITABLE") or '"editable": true' in origin:
        pytest.skip("an editable installation tests the checkout")
    home = Path(tflite_memopt.__file__).resolve().parent
    assert ROOT not in home.parents or "site-packages" in home.parts
