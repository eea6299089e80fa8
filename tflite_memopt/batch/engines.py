"""Where models are worked on: threads of this machine, each with a process of its own, or a Dask cluster."""

from __future__ import annotations

import importlib
import itertools
import queue
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from ..errors import UsageError
from .job import BatchJob, BatchSetting, ModelOutcome
from .worker import ModelProcess, run_job

Job = TypeVar("Job")
Answer = TypeVar("Answer")
_PATIENCE = 30.0
"""Seconds until a scheduler or a first worker of a cluster must be there."""
_EACH = 2
"""Jobs that wait or run for each thread, so that none is idle until the next job comes."""


class WorkersLostError(Exception):
    """Workers of a cluster died, and with them answers that were on their way. Other workers can be had."""


class Engine(Protocol):
    """Works on many models, and gives the outcomes as they come."""

    @property
    def is_local(self) -> bool:
        """Whether the models' files are read where the engine runs."""

    def outcomes(self, jobs: Iterable[BatchJob], setting: BatchSetting) -> Generator[ModelOutcome]:
        """In any order. Raises WorkersLostError; the outcomes before it stand."""


class ThreadEngine:
    """Works on as many models at a time as there are ``jobs``, each in a process of its own."""

    is_local = True

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(jobs)
        self._processes = [ModelProcess() for _ in range(jobs)]
        self._idle: queue.SimpleQueue[ModelProcess] = queue.SimpleQueue()
        for process in self._processes:
            self._idle.put(process)

    def outcomes(self, jobs: Iterable[BatchJob], setting: BatchSetting) -> Generator[ModelOutcome]:
        """In any order; each job gets one, since a process that dies takes no thread with it."""
        left, running = iter(jobs), set[Future[ModelOutcome]]()
        while True:
            for job in itertools.islice(left, _EACH * len(self._processes) - len(running)):
                running.add(self._threads.submit(self._run, job, setting))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)

    def close(self) -> None:
        """End all work at once."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.kill()
        self._threads.shutdown()
        for process in self._processes:
            process.close()

    def _run(self, job: BatchJob, setting: BatchSetting) -> ModelOutcome:
        process = self._idle.get()
        try:
            return process.run(job, setting)
        finally:
            self._idle.put(process)


class DaskEngine:
    """The workers of a Dask cluster; ``address`` is its scheduler's, such as ``tcp://10.0.0.1:8786``."""

    is_local = False

    def __init__(self, address: str) -> None:
        try:
            self._distributed: Any = importlib.import_module("distributed")
        except ImportError as error:
            raise UsageError("--cluster needs Dask: run pip install 'tflite-memopt[dask]'") from error
        self._counted, self._next_count = 0, 0.0
        try:
            self._client = self._distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError(f"no Dask scheduler answers at {address}: {error}") from error
        self._address = address

    def outcomes(self, jobs: Iterable[BatchJob], setting: BatchSetting) -> Generator[ModelOutcome]:
        """In any order. Raises WorkersLostError when Dask gives a model up, since its workers died."""
        try:
            yield from self.map(partial(run_job, setting=setting), jobs)
        except self._distributed.scheduler.KilledWorker as error:
            raise WorkersLostError(" ".join(str(error).split()).partition(". ")[0]) from error

    def map(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Generator[Answer]:
        """The answers of a function on the workers, also of those that come later."""
        left = iter(jobs)
        answers = self._distributed.as_completed(loop=self._client.loop, with_results=True)
        running: set[Any] = set()
        try:
            while True:
                for job in itertools.islice(left, max(0, _EACH * self._threads() - len(running))):
                    future = self._client.submit(function, job, pure=False)
                    running.add(future)
                    answers.add(future)
                if not running:
                    return
                future, answer = next(answers)
                running.remove(future)
                yield answer
        finally:
            self._client.cancel(list(running))

    def close(self) -> None:
        """Leave the cluster, which lives on."""
        self._client.close()

    def _threads(self) -> int:
        """How many models the cluster's workers can work on now; waits for a first one. Asked once a second."""
        if time.monotonic() < self._next_count:
            return self._counted
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise UsageError(f"the cluster at {self._address} has no workers: start some, and --resume") from error
        self._counted = max(1, sum(self._client.nthreads().values()))
        self._next_count = time.monotonic() + 1.0
        return self._counted


@contextmanager
def open_engine(jobs: int, cluster: str | None) -> Iterator[Engine]:
    """The engine for a cluster's address, or for this machine. Raises UsageError for an address that leads nowhere."""
    with closing(ThreadEngine(jobs) if cluster is None else DaskEngine(cluster)) as engine:
        yield engine
