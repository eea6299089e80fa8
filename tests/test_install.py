"""Building the package: compiled copies where there is a compiler, and none, without an error, elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = ("setup.py", "setup.cfg", "README.md")
NO_COMPILER = {
    "none in the path": {"PATH": "/nowhere"},
    "one that fails": {"CC": "/bin/false"},
}


@pytest.mark.parametrize("case", NO_COMPILER)
def test_without_a_compiler_it_builds_without_compiled_copies(case: str, tmp_path: Path) -> None:
    """With Cython, as pip brings it along: what it makes of the extensions must still be optional."""
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "tflite_memopt", tmp_path / "tflite_memopt", ignore=shutil.ignore_patterns("*.so", "*.pyd"))
    command = [sys.executable, "setup.py", "build_ext", "--build-lib", "built", "--force"]
    environment = {key: value for key, value in os.environ.items() if key != "CC"} | NO_COMPILER[case]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'building extension "tflite_memopt.plan.exact._tree" failed' in done.stdout + done.stderr
    assert [*tmp_path.rglob("*.so")] == []
