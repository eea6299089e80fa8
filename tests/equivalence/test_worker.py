"""What an interpreter process does with one job, and that it holds nothing of it while it waits for the next one."""

from __future__ import annotations

import io
import pickle
import weakref

import numpy as np

from tflite_memopt.evidence.equivalence.adapter import Adapter, Array, ModelRun, RunJob
from tflite_memopt.evidence.equivalence.worker import answer_next


def jobs(count: int) -> io.BytesIO:
    stream = io.BytesIO()
    for _ in range(count):
        pickle.dump(RunJob(b"", [[np.arange(3, dtype=np.int8)]], 0), stream)
    stream.seek(0)
    return stream


def answer(adapter: Adapter, given: io.BytesIO, answers: io.BytesIO) -> bool:
    return answer_next("litert", adapter, given, answers, 60)


def test_nothing_of_a_job_is_held_once_it_is_answered() -> None:
    held: list[weakref.ref[Array]] = []

    def adapter(job: RunJob) -> ModelRun:
        assert all(each() is None for each in held)
        result = job.samples[0][0] * 2
        held.extend((weakref.ref(job.samples[0][0]), weakref.ref(result)))
        return ModelRun({0: [result]})

    given, answers = jobs(2), io.BytesIO()
    for _ in range(2):
        assert answer(adapter, given, answers)
        assert all(each() is None for each in held)
    assert not answer(adapter, given, answers)
    answers.seek(0)
    for _ in range(2):
        found: ModelRun = pickle.load(answers)
        assert found.arrays["s0_o0"].tolist() == [0, 2, 4]


def test_a_failure_is_the_answer_to_its_job() -> None:
    def adapter(job: RunJob) -> ModelRun:
        raise RuntimeError("no  kernel")

    answers = io.BytesIO()
    assert answer(adapter, jobs(1), answers)
    answers.seek(0)
    assert pickle.load(answers) == ModelRun(error="no kernel")


def test_a_job_cut_short_ends_the_process() -> None:
    given = io.BytesIO(jobs(1).getvalue()[:-20])
    assert not answer(lambda _: ModelRun(), given, io.BytesIO())
