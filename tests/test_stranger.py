"""A stranger's first hour: an empty folder, an empty home, no compiler, no clone, and the wheel from an index.

Runs every command of ``--help`` and every snippet of README and docs/python.md, unchanged, on the demo model.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.test_wheel import ROOT, built, clone

__all__ = ["clone"]
pytestmark = pytest.mark.slow
COMMANDS = {
    "optimize": "model.tflite -o optimized.tflite --report report.json",
    "analyze": "model.tflite",
    "explore": "model.tflite --effort quick",
    "verify": "model.tflite optimized.tflite",
    "codegen": "optimized.tflite -o generated",
    "check": ". --budget 1M",
    "batch": "model.tflite -o many",
    "compare": "model.tflite",
    "serve": "--no-browser",
    "targets": "",
}
"""Arguments of every command; one that is not here fails the test."""
EXTRAS = {"batch": "tflite-memopt[dask]", "serve": "tflite-memopt[serve]"}
"""The extra that a command, or words in a line, need."""
STUBS = """
import pathlib
class converter:
    convert = staticmethod(lambda: pathlib.Path("model.tflite").read_bytes())
"""
"""Names of the reader's own that the snippets use."""


class Stranger:
    """A machine with Python and nothing else."""

    def __init__(self, home: Path, wheel: Path) -> None:
        self.folder = home / "empty folder"
        self.folder.mkdir()
        subprocess.run([sys.executable, "-m", "venv", home / "environment"], check=True)
        self.bin = next(each for each in (home / "environment").glob("*") if each.name in ("bin", "Scripts"))
        names = ("TMPDIR", "SYSTEMROOT", "PIP_INDEX_URL", "PIP_CONFIG_FILE")
        self.environment = {name: os.environ[name] for name in names if name in os.environ}
        self.environment |= {"HOME": str(home), "USERPROFILE": str(home), "PATH": str(self.bin)}
        self.install(str(wheel))
        for name in ("model.tflite", "vww.tflite", "a.tflite", "b.tflite"):
            shutil.copy(ROOT / "scripts" / "models" / "demo_int8.tflite", self.folder / name)

    def install(self, what: str) -> None:
        words = [str(self.bin / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what]
        subprocess.run(words, check=True, env={**os.environ, "PYTHONPATH": "", "PYTHONSAFEPATH": "1"})

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the empty folder; the first word is found in the environment."""
        program = str(self.bin / words[0])
        command = [program, *words[1:]]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def stranger(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    found = Stranger(tmp_path_factory.mktemp("home"), built(clone, "wheel"))
    assert found.run("python", "-c", "import shutil; print(shutil.which('cc'), shutil.which('git'))").stdout == (
        "None None\n"
    )
    return found


def test_every_command_runs(stranger: Stranger) -> None:
    said = stranger.run("tflite-memopt", "--help").stdout
    offered = re.findall(r"^ {2}([a-z]+) {2,}\S", said.partition("Commands:")[2], re.MULTILINE)
    assert set(offered) == set(COMMANDS)
    for name, words in COMMANDS.items():
        done = stranger.run("tflite-memopt", name, *shlex.split(words))
        if name in EXTRAS:
            assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
            assert EXTRAS[name] in done.stderr
            continue
        assert done.returncode == 0, f"{name} {words}: {done.stderr}"
        assert stranger.run("tflite-memopt", name, "--help").returncode == 0


def snippets(page: str) -> list[str]:
    """Return the indented and fenced blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    indented = re.findall(r"(?:^(?: {4}.*)?\n)+", text, re.MULTILINE)
    return [textwrap.dedent(block).strip() for block in (*fenced, *indented) if block.strip()]


def test_every_command_of_the_readme_runs(stranger: Stranger) -> None:
    lines = [line for block in snippets("README.md") for line in block.splitlines()]
    commands = [line.removeprefix("$ ").partition("   #")[0].strip() for line in lines]
    commands = [line for line in commands if line.startswith("tflite-memopt ")]
    assert len(commands) >= 5
    for line in commands:
        words = shlex.split(line, comments=True)
        forced = ["--force"] if words[1] in ("optimize", "codegen") and "--force" not in words else []
        done = stranger.run(*words, *forced)
        if any(each in line for each in EXTRAS):
            assert (done.returncode, done.stderr.count("\n")) == (2, 1), f"{line}: {done.stderr}"
            continue
        assert done.returncode == 0, f"{line}: {done.stderr}"


def test_every_snippet_of_the_page_on_python_runs(stranger: Stranger) -> None:
    code = "\n".join([STUBS, *snippets("docs/python.md")])
    assert code.count("\n") > 20
    (stranger.folder / "small.tflite").unlink(missing_ok=True)  # another test may have written it
    done = stranger.run("python", "-c", code)
    assert done.returncode == 0, done.stderr


def test_import_and_version_are_quick(stranger: Stranger) -> None:
    """In processor time: the target is a quarter of a second, and the machine may be busy."""
    code = "import time, tflite_memopt; print(time.process_time())"
    assert float(stranger.run("python", "-c", code).stdout) < 0.25
    assert "tflite_memopt" not in stranger.run("python", "-X", "importtime", "-c", "0").stderr
    done = stranger.run("python", "-X", "importtime", "-m", "tflite_memopt", "--version")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & {"numpy", "flatbuffers", "ai_edge_litert"}


def test_what_it_runs_is_the_wheel(stranger: Stranger) -> None:
    home = stranger.run("python", "-c", "import tflite_memopt; print(tflite_memopt.__file__)").stdout
    assert "site-packages" in home
    assert str(ROOT) not in home
