"""Where jobs run: processes of this machine or a Ray cluster, both by joblib, or a Dask cluster."""

from __future__ import annotations

import importlib
import itertools
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from ..errors import UsageError

Job = TypeVar("Job")
Answer = TypeVar("Answer")
_PATIENCE = 30.0
"""Seconds until a scheduler or a first worker of a cluster must be there."""
_EACH = 2
"""Jobs that wait or run for each thread of a Dask cluster, so that none is idle until the next job comes."""
_SLICE = 8
"""Jobs a processor, in each call of an engine that gives no answer before all are there."""


class WorkersLostError(Exception):
    """Workers died, and with them answers that were on their way. Other workers can be had."""


class Engine:
    """Runs a function on many jobs, and gives the answers as they come; ``jobs`` at the same time on this machine."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def map(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Generator[Answer]:
        """The answers, in any order. Raises WorkersLostError; what was answered before stands."""
        try:
            yield from self._answers(function, jobs)
        except self._lost as error:
            raise WorkersLostError(" ".join(str(error).split()).partition(". ")[0]) from error

    def start(self) -> None:
        """Start workers. What starts while Ctrl-C is ignored ignores it: a terminal sends it to workers as well."""
        if self.jobs == 1 or threading.current_thread() is not threading.main_thread():
            return
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            joblib.Parallel(n_jobs=self.jobs)(joblib.delayed(int)() for _ in range(self.jobs))
        finally:
            signal.signal(signal.SIGINT, before)

    def close(self) -> None:
        """Give workers back at once, whatever they are doing."""
        if self.jobs > 1:
            get_reusable_executor(max_workers=self.jobs).shutdown(wait=True, kill_workers=True)

    @property
    def _lost(self) -> tuple[type[Exception], ...]:
        return (TerminatedWorkerError,)

    def _answers(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Generator[Answer]:
        run = joblib.Parallel(n_jobs=self.jobs, return_as="generator_unordered")
        answers = run(joblib.delayed(function)(job) for job in jobs)
        try:
            # Not "yield from": that would close the answers before the warning is turned off.
            for answer in answers:  # noqa: UP028
                yield answer
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib warns of work that is given up; after Ctrl-C that is meant
                answers.close()


class DaskEngine(Engine):
    """The workers of a Dask cluster; ``address`` is its scheduler's, such as ``tcp://10.0.0.1:8786``."""

    def __init__(self, address: str) -> None:
        self._distributed = _need("distributed", "dask")
        super().__init__(jobs=-1)
        self._counted, self._next_count = 0, 0.0
        try:
            self._client = self._distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError(f"no Dask scheduler answers at {address}: {error}") from error
        self._address = address

    def close(self) -> None:
        """Leave the cluster, which lives on."""
        self._client.close()

    @property
    def _lost(self) -> tuple[type[Exception], ...]:
        return (self._distributed.scheduler.KilledWorker,)

    def _answers(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Generator[Answer]:
        """By the client itself: joblib counts workers once, leaves later ones idle, and gives a single one nothing."""
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


class RayEngine(Engine):
    """The workers of a Ray cluster; ``address`` such as ``ray://10.0.0.1:10001``, ``ray://`` for one of its own."""

    def __init__(self, address: str) -> None:
        self._ray = _need("ray", "ray")
        _need("ray.util.joblib", "ray").register_ray()
        super().__init__(jobs=-1)
        self._ray.init(address=None if address == "ray://" else address, log_to_driver=False, logging_level="error")

    def close(self) -> None:
        """Leave the cluster; one that this engine has started ends."""
        self._ray.shutdown()

    @property
    def _lost(self) -> tuple[type[Exception], ...]:
        return (self._ray.exceptions.RayError,)

    def _answers(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Generator[Answer]:
        size = _SLICE * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        left = iter(jobs)
        while part := list(itertools.islice(left, size)):
            with joblib.parallel_config("ray"):
                yield from joblib.Parallel(n_jobs=self.jobs)(joblib.delayed(function)(job) for job in part)


@contextmanager
def open_engine(jobs: int, cluster: str | None) -> Iterator[Engine]:
    """The engine for a cluster's address, or for this machine. Raises UsageError for an address that leads nowhere."""
    engine = Engine(jobs) if cluster is None else _for_cluster(cluster)
    try:
        if cluster is None:
            engine.start()
        yield engine
    finally:
        engine.close()


def _for_cluster(address: str) -> Engine:
    return RayEngine(address) if address.startswith("ray://") else DaskEngine(address)


def _need(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"--cluster needs {extra}: run pip install 'tflite-memopt[{extra}]'") from error
