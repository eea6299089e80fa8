"""What an interpreter process does with one job, and that it holds nothing of it while it waits for the next one."""

from __future__ import annotations

import io
import weakref

import numpy as np

from tflite_memopt.equivalence import wire
from tflite_memopt.equivalence.adapter import Outcome, RunJob
from tflite_memopt.equivalence.inputs import Array
from tflite_memopt.equivalence.worker import answer_next

HEAD = {"samples": 1, "inputs": 1, "arena_bytes": 0, "tensors": [], "kernels": "reference", "fill": None, "turns": 1}


def jobs(count: int) -> io.BytesIO:
    stream = io.BytesIO()
    for _ in range(count):
        wire.send(stream, HEAD, {"model": np.zeros(4, np.uint8), "s0_i0": np.arange(3, dtype=np.int8)})
    stream.seek(0)
    return stream


def test_nothing_of_a_job_is_held_once_it_is_answered() -> None:
    held: list[weakref.ref[Array]] = []

    def adapter(job: RunJob) -> Outcome:
        assert all(each() is None for each in held)
        result = job.samples[0][0] * 2
        held.extend((weakref.ref(job.samples[0][0]), weakref.ref(result)))
        return Outcome({"s0_o0": result})

    given, answers = jobs(2), io.BytesIO()
    for _ in range(2):
        assert answer_next(adapter, given, answers)
        assert all(each() is None for each in held)
    assert not answer_next(adapter, given, answers)
    answers.seek(0)
    for _ in range(2):
        answer = wire.receive(answers)
        assert answer is not None
        assert answer.arrays["s0_o0"].tolist() == [0, 2, 4]


def test_a_failure_is_the_answer_to_its_job() -> None:
    def adapter(job: RunJob) -> Outcome:
        raise RuntimeError("no  kernel")

    answers = io.BytesIO()
    assert answer_next(adapter, jobs(1), answers)
    answers.seek(0)
    answer = wire.receive(answers)
    assert answer is not None
    assert answer.head == {"error": "no kernel"}
