"""Windows and macOS, as far as Linux can show them: every command without what those systems lack, in awkward folders.

It shows that nothing is called that is not there. It does not show that what is called does the same there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models import dense_model, mobile_chain
from tflite_memopt.model.io.writer import write_model

HERE = Path(__file__).parent
SYSTEMS = ("win32", "darwin")
_FOLDER = "my models, größer 模型 (1)"


def run(system: str, folder: Path, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    """A command in that folder, on a machine that looks like that system."""
    environment = os.environ | {"PYTHONPATH": str(HERE), "TFLITE_MEMOPT_PRETEND": system} | more
    command = [sys.executable, "-m", "tflite_memopt", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / _FOLDER
    made.mkdir()
    (made / "mein modell ü.tflite").write_bytes(write_model(mobile_chain(12)))
    return made


def python(system: str, code: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(HERE), "TFLITE_MEMOPT_PRETEND": system}
    code = f"__package__ = 'tflite_memopt'\n{code}"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return done.stderr.splitlines()[-1] if done.stderr else ""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; os.fork()", "no attribute 'fork'"),
        ("from os import sched_getaffinity", "cannot import name 'sched_getaffinity'"),
        ("import signal; signal.SIGKILL", "no attribute 'SIGKILL'"),
        ("import resource", "win32 has no resource"),
        ("import sys; assert sys.platform == 'win32'; sys.exit(0)", ""),
    ],
)
def test_what_is_hidden_is_missed(code: str, said: str) -> None:
    """Else the tests below could not fail."""
    assert said in python("win32", code)
    assert bool(said) == bool(python("win32", code))


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_command_runs(system: str, folder: Path) -> None:
    small, name = "kleiner ü.tflite", "mein modell ü.tflite"
    quick = ("--effort", "quick")
    for arguments in (
        ("optimize", name, "-o", small, *quick, "--report", "ein bericht ü.json"),
        ("analyze", small, "--report", "jetzt ü.json"),
        ("verify", name, small, "--samples", "2"),
        ("codegen", small, "-o", "fürs Gerät"),
        ("explore", name, *quick),
        ("batch", name, small, "-o", "alle ü", "--effort", "quick"),
        ("targets",),
    ):
        done = run(system, folder, *arguments)
        assert done.returncode == 0, f"{arguments}: {done.stderr.decode()}"
    report = json.loads((folder / "ein bericht ü.json").read_bytes())
    assert report["model"] == name
    assert (folder / "fürs Gerät" / "main.cc").is_file()


@pytest.mark.slow
def test_the_result_is_that_of_linux(folder: Path) -> None:
    made = []
    for system in (*SYSTEMS, ""):
        done = run(system, folder, "optimize", "mein modell ü.tflite", "-o", f"{system}.tflite", "--no-verify")
        assert done.returncode == 0, done.stderr.decode()
        made.append((folder / f"{system}.tflite").read_bytes())
    assert made[0] == made[1] == made[2]


@pytest.mark.slow
def test_where_there_is_no_alarm_a_process_that_takes_too_long_is_ended() -> None:
    code = """
from tflite_memopt.evidence.equivalence.runner import Interpreter, ProcessLimits
from tflite_memopt.evidence.equivalence.adapter import RunJob
import tflite_memopt.evidence.equivalence.worker, subprocess, sys, time
Interpreter._start = lambda self: subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
interpreter = Interpreter("litert", ProcessLimits(seconds=1))
answer = interpreter.run(RunJob(b"", [], 0))
interpreter.close()
assert answer.error == "it did not finish within 1 s", answer
"""
    environment = os.environ | {"PYTHONPATH": str(HERE), "TFLITE_MEMOPT_PRETEND": "win32"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_runner_that_hangs_is_ended_there_too(tmp_path: Path) -> None:
    runner = tmp_path / "my runner"
    runner.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    runner.chmod(0o755)
    code = f"""
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.external_runner import command_of, run_external
assert command_of({str(runner)!r}) == [{str(runner)!r}]
run = run_external(command_of({str(runner)!r}), RunJob(b"", [], 0), timeout=1)
assert run.error == "the runner did not finish within 1 s", run
"""
    environment = os.environ | {"PYTHONPATH": str(HERE), "TFLITE_MEMOPT_PRETEND": "win32"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_console_without_a_letter_of_a_name_shows_its_number(tmp_path: Path) -> None:
    """As one of Windows with a code page of its own does, and a pipe there."""
    (tmp_path / "模型.tflite").write_bytes(write_model(dense_model()))
    for arguments in (("analyze", "模型.tflite"), ("optimize", "模型.tflite", "-o", "大.tflite", "--no-verify")):
        done = run("win32", tmp_path, *arguments, PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
        assert done.returncode == 0, done.stderr.decode()
