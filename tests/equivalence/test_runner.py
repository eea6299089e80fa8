"""Interpreter processes: limits, crashes, and that none is left behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from tests.models import mobile_chain
from tflite_memopt.equivalence import wire
from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.equivalence.inputs import Array, seeded_inputs
from tflite_memopt.equivalence.limits import ProcessLimits
from tflite_memopt.equivalence.pool import open_interpreters
from tflite_memopt.equivalence.runner import GivenUpError, Interpreter
from tflite_memopt.graph.side_by_side import side_by_side
from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model

ARENA = 4 << 20


def crashing() -> bytes:
    model = read_model(write_model(mobile_chain()))
    offline_plan.attach(model, {tensor: 1 << 30 for tensor in model.main.tensors if not tensor.is_constant})
    return write_model(model)


def test_after_a_crash_the_next_job_runs() -> None:
    model = mobile_chain()
    samples = seeded_inputs(model, 1, 0)
    with closing(Interpreter("tflm")) as interpreter:
        good = RunJob(write_model(model), samples, ARENA)
        assert interpreter.run(good).ran
        bad = interpreter.run(RunJob(crashing(), samples, ARENA))
        assert not bad.ran
        assert bad.error
        assert interpreter.run(good).ran


def test_time_is_limited() -> None:
    model = mobile_chain(96)
    samples = seeded_inputs(model, 1, 0) * 100_000
    with closing(Interpreter("litert", ProcessLimits(seconds=0.05))) as interpreter:
        assert interpreter.run(RunJob(write_model(model), samples[:400], 0)).error == "it did not finish within 0.05 s"


def test_memory_is_limited() -> None:
    model = mobile_chain()
    limits = ProcessLimits(memory_bytes=2 << 30)
    with closing(Interpreter("tflm", limits)) as interpreter:
        run = interpreter.run(RunJob(write_model(model), seeded_inputs(model, 1, 0), 3 << 30))
        assert not run.ran
        assert run.error


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


def test_processes_outlive_the_thread_that_asked_for_them() -> None:
    model = mobile_chain()
    job, bad = (RunJob(data, seeded_inputs(model, 1, 0), ARENA) for data in (write_model(model), crashing()))
    with open_interpreters((), ProcessLimits()) as interpreters:

        def crash_and_run() -> int:
            interpreter = interpreters["tflm"]
            assert isinstance(interpreter, Interpreter)
            assert interpreter.run(bad).error
            assert interpreter.run(job).ran
            return interpreter._process.pid

        asked = _in_a_thread_that_ends(crash_and_run)
        interpreter = interpreters["tflm"]
        assert isinstance(interpreter, Interpreter)
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


def test_closed_interpreters_are_given_to_nobody() -> None:
    with open_interpreters(("tflm",), ProcessLimits()) as interpreters:
        running = interpreters["tflm"]
        interpreters.close()
        interpreters.close()
        assert isinstance(running, Interpreter)
        assert running._process.poll() is not None
        for runtime in ("tflm", "litert"):
            with pytest.raises(GivenUpError):
                interpreters[runtime]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they end at their next read")
def test_processes_end_with_the_tool() -> None:
    code = (
        "import time\n"
        "from tflite_memopt.equivalence.runner import Interpreter\n"
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


def test_messages_keep_shapes_and_types() -> None:
    sent: dict[str, Array] = {
        "a": np.arange(6, dtype=np.int16).reshape(2, 3),
        "b": np.zeros((), np.float32),
        "c": np.zeros((0, 4), bool),
    }
    read, write = os.pipe()
    with os.fdopen(write, "wb") as stream:
        wire.send(stream, {"x": 1}, sent)
    with os.fdopen(read, "rb") as stream:
        message = wire.receive(stream)
        assert message is not None
        assert message.head == {"x": 1}
        for name, array in sent.items():
            assert (message.arrays[name].dtype, message.arrays[name].shape) == (array.dtype, array.shape)
            assert np.array_equal(message.arrays[name], array)
        assert wire.receive(stream) is None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere copies of a process have all of it")
@pytest.mark.parametrize("is_private", [True, False])
def test_copies_of_the_process_do_without_large_answers(is_private: bool) -> None:
    stream = io.BytesIO()
    wire.send(stream, {}, {"large": np.arange(1 << 17, dtype=np.uint8), "small": np.arange(4, dtype=np.uint8)})
    stream.seek(0)
    found = wire.receive(stream, is_private)
    assert found is not None
    assert found.arrays["large"].tolist() == list(range(256)) * 512
    assert _ends_well_in_a_copy(found.arrays["small"])
    assert _ends_well_in_a_copy(found.arrays["large"]) != is_private


def _ends_well_in_a_copy(array: Array) -> bool:
    """Whether a copy of this process can read the array."""
    here = os.getpid()

    def read(_: int) -> int:
        if os.getpid() != here:
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        array.sum()
        return os.getpid()

    return here not in side_by_side(read, [1, 2], 2)  # what dies leaves its work to this process


def test_a_message_cut_short_is_none() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "wb") as stream:
        stream.write((1000).to_bytes(8, "little") + b"{")
    with os.fdopen(read, "rb") as stream:
        assert wire.receive(stream) is None


@pytest.mark.parametrize("gigabytes", [4, 64])
def test_a_lower_limit_of_the_shell_stays(gigabytes: int) -> None:
    """Nobody but root may raise it; a process that may not be root runs the model all the same."""
    lines = (
        "import os, resource",
        f"resource.setrlimit(resource.RLIMIT_AS, ({gigabytes << 30}, {gigabytes << 30}))",
        "from tflite_memopt.equivalence import limits",
        "limits.apply_in_process(16 << 30, os.getppid())",
        "print(*resource.getrlimit(resource.RLIMIT_AS))",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(min(gigabytes, 16) << 30)] * 2, done.stderr
