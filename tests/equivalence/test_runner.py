"""Interpreter processes: limits, crashes, and that none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.interpreters import ending
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain
from tests.tflm import needs_wheel
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.equivalence.runner import CRASHED, GivenUpError, Interpreter, Interpreters, ProcessLimits
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType

ARENA = 4 << 20


@needs_wheel
@pytest.mark.usefixtures("mortal_wheel")
def test_after_a_crash_the_next_job_runs() -> None:
    model = mobile_chain()
    samples = seeded_inputs(model, 1, 0)
    with closing(Interpreter("tflm")) as interpreter:
        good = RunJob(write_model(model), samples, ARENA)
        assert interpreter.run(good).ran
        first = interpreter._process.pid
        bad = interpreter.run(RunJob(ending(model), samples, ARENA))
        assert not bad.ran
        assert bad.error == f"{CRASHED} (SIGSEGV)"
        assert interpreter.run(good).ran
        assert interpreter._process.pid != first


def test_time_is_limited() -> None:
    model = mobile_chain(96)
    samples = seeded_inputs(model, 1, 0) * 100_000
    with closing(Interpreter("litert", ProcessLimits(seconds=0.05))) as interpreter:
        assert interpreter.run(RunJob(write_model(model), samples[:400], 0)).error == "it did not finish within 0.05 s"


@needs_wheel
def test_memory_is_limited() -> None:
    model = mobile_chain()
    limits = ProcessLimits(memory_bytes=2 << 30)
    with closing(Interpreter("tflm", limits)) as interpreter:
        run = interpreter.run(RunJob(write_model(model), seeded_inputs(model, 1, 0), 3 << 30))
        assert not run.ran
        assert run.error


@needs_wheel
def test_interpreters_give_way_to_the_search() -> None:
    model = mobile_chain()
    with closing(Interpreter("tflm")) as interpreter:
        assert interpreter.run(RunJob(write_model(model), seeded_inputs(model, 1, 0), ARENA)).ran
        niceness = os.getpriority(os.PRIO_PROCESS, interpreter._process.pid)
    assert niceness > os.getpriority(os.PRIO_PROCESS, 0) or niceness == 19


def test_any_thread_ends_a_run() -> None:
    model = mobile_chain(96)
    job = RunJob(write_model(model), seeded_inputs(model, 1, 0) * 1000, 0)
    interpreter = Interpreter("litert")
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(interpreter.run, job)
        while not interpreter._in_use.locked():
            time.sleep(0.001)
        time.sleep(0.05)  # in the midst of sending, or of waiting: both end
        interpreter.close()
        with pytest.raises(GivenUpError):
            run.result()
    assert interpreter._process.poll() is not None
    with pytest.raises(GivenUpError):
        interpreter.run(job)


@needs_wheel
def test_threads_may_close_at_once() -> None:
    threads = 8
    for _ in range(20):
        interpreter, together = Interpreter("tflm"), threading.Barrier(threads)

        def close(interpreter: Interpreter = interpreter, together: threading.Barrier = together) -> None:
            together.wait()
            interpreter.close()

        with ThreadPoolExecutor(threads) as pool:
            for each in [pool.submit(close) for _ in range(threads)]:
                each.result()
        assert interpreter._process.poll() is not None


@needs_wheel
@pytest.mark.usefixtures("mortal_wheel")
def test_processes_outlive_the_thread_that_asked_for_them() -> None:
    model = mobile_chain()
    job, bad = (RunJob(data, seeded_inputs(model, 1, 0), ARENA) for data in (write_model(model), ending(model)))
    with closing(Interpreter("tflm")) as interpreter:

        def crash_and_run() -> int:
            assert interpreter.run(bad).error
            assert interpreter.run(job).ran
            return interpreter._process.pid

        asked = _in_a_thread_that_ends(crash_and_run)
        assert interpreter.run(job).ran
        assert interpreter._process.pid == asked


def _in_a_thread_that_ends(function: Callable[[], int]) -> int:
    """What the function gives, once Linux no longer knows of the thread."""
    with ThreadPoolExecutor(1) as pool:
        number = pool.submit(threading.get_native_id).result()
        found = pool.submit(function).result()
    while os.path.exists(f"/proc/self/task/{number}"):
        time.sleep(0.001)
    return found


@needs_wheel
@pytest.mark.usefixtures("own_interpreters")
def test_closed_interpreters_give_no_answer() -> None:
    job = RunJob(write_model(mobile_chain()), seeded_inputs(mobile_chain(), 1, 0), ARENA)
    with Interpreters(("tflm",), ProcessLimits()) as interpreters:
        running = interpreters["tflm"]
        interpreters.close()
        interpreters.close()
        assert isinstance(running, Interpreter)
        assert running._process.poll() is not None
        with pytest.raises(GivenUpError):
            running.run(job)


def test_a_job_and_its_answer_keep_shapes_and_types() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 2, 3), DType.INT16, scale=0.1), b.input("y", (1, 4))
    data = write_model(b.finish(x, b.add(y, y)))
    samples = seeded_inputs(read_model(data), 2, 0)
    with closing(Interpreter("litert")) as interpreter:
        run = interpreter.run(RunJob(data, samples, 0, (0, 1)))
    assert [[(each.dtype, each.shape) for each in values] for values in run.outputs.values()] == [
        [(np.dtype(np.int16), (1, 2, 3))] * 2,
        [(np.dtype(np.int8), (1, 4))] * 2,
    ]
    for at in (0, 1):
        assert all(np.array_equal(a, sample[at]) for a, sample in zip(run.tensors[at], samples, strict=True))


@pytest.mark.slow
def test_a_program_that_does_not_guard_its_main_part_runs_once(tmp_path: Path) -> None:
    """A process pool of the standard library would run it again in every process."""
    program = tmp_path / "program.py"
    program.write_text(
        "from tests.models import dense_model\n"
        "from tflite_memopt import Options, optimize\n"
        "from tflite_memopt.model.io.writer import write_model\n"
        "print(optimize(write_model(dense_model()), Options(samples=2)).report.equivalence['litert'].equal)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split() == ["True"], done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they end at their next read")
def test_processes_end_with_the_tool() -> None:
    code = (
        "import time\n"
        "from tflite_memopt.evidence.equivalence.runner import Interpreter\n"
        "print(Interpreter('litert')._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    tool = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert tool.stdout is not None
    worker = int(tool.stdout.readline())
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    tool.stdout.close()
    for _ in range(100):
        if not _is_running(worker):
            return
        time.sleep(0.1)
    raise AssertionError("the interpreter process is still there")


def _is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("gigabytes", [4, 64])
def test_a_lower_limit_of_the_shell_stays(gigabytes: int) -> None:
    """Nobody but root may raise it; a process that may not be root runs the model all the same."""
    lines = (
        "import resource",
        f"resource.setrlimit(resource.RLIMIT_AS, ({gigabytes << 30}, {gigabytes << 30}))",
        "from tflite_memopt.evidence.equivalence.worker import limit_memory",
        "limit_memory(16 << 30)",
        "print(*resource.getrlimit(resource.RLIMIT_AS))",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(min(gigabytes, 16) << 30)] * 2, done.stderr
