"""A runner of the user's beside the tflite-micro wheel: a board, Renode, QEMU.

The protocol is in ``firmware/templates/runner.cc.jinja``.

A runner is a command. It is called in a folder of its own with the name of a file of requests, one run a line:

    MODEL INPUTS OUTPUTS ARENA_BYTES SAMPLES SEARCH [KEPT]

and answers each on its standard output by lines ``key value``, from ``model MODEL`` to ``done`` or ``error TEXT``.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ...errors import ErrorKind, UsageError
from ...model.io.reader import read_model
from ...model.ir.model import Tensor
from .adapter import TIMEOUT_SECONDS, Array, ModelRun, RunJob
from .inputs import numpy_type

RUNNER = "runner"
"""Its name among the runtimes of a verification."""

_REQUESTS, _MODEL, _INPUTS, _OUTPUTS = "requests.txt", "model0.tflite", "inputs0.bin", "outputs0.bin"
_NUMBERS = ("head", "tail", "smallest_arena", "instructions", "pointer_bits")
_NEEDED = ("head", "tail")


def command_of(text: str | os.PathLike[str]) -> list[str]:
    """Return the command that ``--runner`` names: a path, or a path and arguments in shell quoting.

    Raises UsageError when there is no such executable file.
    """
    words = [str(text)] if os.path.exists(text) else _words(os.fspath(text))
    if not words or not os.access(words[0], os.X_OK) or Path(words[0]).is_dir():
        raise UsageError(
            f"the runner '{text}' is not an executable file; codegen --write-runner writes the source of one",
            ErrorKind.RUNNER,
        )
    # Not resolved: a link to Python in a virtual environment is that environment.
    return [str(Path(words[0]).absolute()), *words[1:]]


def _words(text: str) -> list[str]:
    """As a shell reads it. On Windows a backslash is a part of a path, and escapes nothing."""
    if sys.platform != "win32":
        return shlex.split(text)
    return [word.strip("\"'") for word in shlex.split(text, posix=False)]


class ExternalRunner:
    """A runner in the place of an interpreter process: a call for each model. ``seconds`` is the limit of one call.

    Raises UsageError when there is no such command.
    """

    def __init__(self, command: str | os.PathLike[str], seconds: float = TIMEOUT_SECONDS) -> None:
        self._command, self._seconds = command_of(command), seconds

    def run(self, job: RunJob) -> ModelRun:
        """Run one model; see :func:`run_external`."""
        return run_external(self._command, job, self._seconds)

    def close(self) -> None:
        """Nothing is left running."""


def run_external(command: Sequence[str], job: RunJob, timeout: float = TIMEOUT_SECONDS) -> ModelRun:
    """Run one job, in an arena in bytes; 0 is the largest that the runner has. ``timeout`` is in seconds.

    A failure is the run's ``error``: a model that TFLM refuses, a runner that crashes, hangs or does not keep to the
    protocol. Raises UsageError when the command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="tflite_memopt_") as name:
        folder = Path(name)
        (folder / _MODEL).write_bytes(job.model)
        with (folder / _INPUTS).open("wb") as file:
            for array in (array for sample in job.samples for array in sample):
                file.write(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
        carried = {source for _, source in job.carried}  # which have no bytes after the first sample
        kept = "".join(str(int(at in carried)) for at in range(len(job.samples[0]))) if carried else ""
        sizes = f"{job.arena_bytes} {len(job.samples)} {int(job.measure)} {kept}".rstrip()
        (folder / _REQUESTS).write_bytes(f"{_MODEL} {_INPUTS} {_OUTPUTS} {sizes}\n".encode())
        printed, ended = _call(command, folder, timeout)
        lines = [line.strip() for line in printed.splitlines()]
        first = f"model {_MODEL}"  # text before it is ignored
        if first not in lines:
            return ModelRun(error=ended)
        return _run(folder, job, lines[lines.index(first) :], ended)


def _call(command: Sequence[str], folder: Path, timeout: float) -> tuple[str, str]:
    """Return the output of the command, and how it ended for runs without an answer."""
    try:
        process = subprocess.Popen(
            [*command, _REQUESTS],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise UsageError(f"cannot start the runner '{shlex.join(command)}': {error}", ErrorKind.RUNNER) from error
    try:
        out, err = process.communicate(timeout=timeout)
        ended = _ended(process.returncode, err)
    except subprocess.TimeoutExpired:
        _end(process)
        out, _ = process.communicate()
        ended = f"the runner did not finish within {timeout:g} s"
    return out.decode("utf-8", "replace"), ended


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a runner with all that it has started, which may be an emulator."""
    if sys.platform != "win32":
        os.killpg(process.pid, signal.SIGKILL)
        return
    with contextlib.suppress(OSError):
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
    process.kill()


def _ended(code: int, err: bytes) -> str:
    how = f"the runner crashed ({signal.Signals(-code).name})" if code < 0 else f"the runner ended with code {code}"
    last = " ".join(err.decode("utf-8", "replace").strip().splitlines()[-2:])
    return f"{how} before it answered" + (f": {last}" if last else "")


def _run(folder: Path, job: RunJob, lines: list[str], ended: str) -> ModelRun:
    told = _told(lines)
    kernels, commit = told.get("kernels", ""), told.get("commit", "")
    if "done" not in told:
        log = "; ".join(line.removeprefix("log ") for line in lines if line.startswith("log "))
        error = told.get("error", ended) + (f" ({log})" if log else "")
        return ModelRun(error=error, kernels=kernels, commit=commit)
    try:
        facts = {key: int(told[key]) for key in _NUMBERS if key in told}
        missing = [key for key in _NEEDED if key not in facts]
        if missing:
            raise ValueError(f"it lacks {' and '.join(missing)}")
        outputs = _outputs((folder / _OUTPUTS).read_bytes(), job)
    except (OSError, ValueError) as error:
        problem = f"the runner does not follow the protocol in runner.cc of codegen --write-runner: {error}"
        return ModelRun(error=problem, kernels=kernels, commit=commit)
    return ModelRun(outputs, facts=facts, kernels=kernels, commit=commit)


def _told(lines: Iterable[str]) -> dict[str, str]:
    pairs = (line.partition(" ") for line in lines)
    return {key: value.strip() for key, _, value in pairs if key != "log"}


def _outputs(data: bytes, job: RunJob) -> dict[int, list[Array]]:
    """By position, for each sample. Raises ValueError when there are not as many bytes as the model gives."""
    outputs: tuple[Tensor, ...] = read_model(job.model).main.outputs
    types = [numpy_type(tensor.dtype).newbyteorder("<") for tensor in outputs]
    sizes = [kind.itemsize * int(np.prod(tensor.shape)) for kind, tensor in zip(types, outputs, strict=True)]
    wanted = len(job.samples) * sum(sizes)
    if len(data) != wanted:
        raise ValueError(f"its outputs have {len(data)} bytes, the model's have {wanted}")
    found: dict[int, list[Array]] = {position: [] for position in range(len(outputs))}
    at = 0
    for _ in job.samples:
        for position, (kind, size, tensor) in enumerate(zip(types, sizes, outputs, strict=True)):
            values = np.frombuffer(data, kind, size // kind.itemsize, at).reshape(tensor.shape)
            found[position].append(values.astype(kind.newbyteorder("=")))
            at += size
    return found
