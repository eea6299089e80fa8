"""The workers: a Dask cluster on this machine, or the one whose scheduler has an address.

Dask limits the memory of workers, restarts those that die, and gives their models to others.
"""

from __future__ import annotations

import importlib
import itertools
import logging
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from ..errors import ErrorKind, UsageError, imported

Job = TypeVar("Job")
Answer = TypeVar("Answer")
_PATIENCE = 30.0
"""Seconds until a scheduler or a first worker must be there."""
_LARGE = "distributed.admin.large-graph-warning-threshold"


@contextmanager
def open_cluster(workers: int | None, memory: int | None, address: str | None) -> Iterator[Any]:
    """Open a client of the cluster at ``address``; None: of one on this machine, which ends with the context.

    ``workers``: processes of that one, each with ``memory`` bytes; None: one for each processor that may be used, and
    an equal part of the machine's memory. Raises UsageError without Dask, and where no scheduler answers.
    """
    lacking = "batch needs Dask: run pip install 'tflite-memopt[dask]'"
    distributed, dask = imported("distributed", lacking), imported("dask", lacking)
    with ExitStack() as opened:
        opened.enter_context(dask.config.set({_LARGE: "2GiB"}))  # a model travels with its job
        if address is None:
            # Workers that are busy when a run is ended are killed, which is no news.
            logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
            local = distributed.LocalCluster(
                n_workers=workers or dask.system.CPU_COUNT,
                threads_per_worker=1,
                memory_limit=memory or "auto",
                dashboard_address=None,
                # Its server of health pages would ask for port 8787 all the same, and warn where that is taken.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                preload=[__name__],
            )
            address = opened.enter_context(local)
        try:
            client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError(f"no Dask scheduler answers at {address}: {error}", ErrorKind.UNREACHABLE) from error
        yield opened.enter_context(client)


def dask_setup(_: Any) -> None:
    """Leave Ctrl-C to the command: a worker on this machine is in its process group. Dask calls it in each worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Once the command is gone, a worker may still report that its scheduler does not answer.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


def answers_of(
    client: Any, work: Callable[[Job], Answer], jobs: Iterable[Job]
) -> Generator[tuple[Job, Answer | BaseException]]:
    """Each job with its answer, as they come; with the error in its place where Dask gives the job up.

    A job for each thread that the cluster has at the moment, so that a worker that dies takes no other job with it.
    """
    left, running = iter(jobs), dict[Any, Job]()
    done = importlib.import_module("distributed").as_completed(loop=client.loop)
    try:
        while True:
            for job in itertools.islice(left, max(0, _threads(client) - len(running))):
                future = client.submit(work, job, pure=False)
                running[future] = job
                done.add(future)
            if not running:
                return
            future = next(done)
            error = future.exception()
            yield running.pop(future), future.result() if error is None else error
    finally:
        client.cancel(list(running))


def _threads(client: Any) -> int:
    """Return how many jobs the workers can work on now; waits for a first worker."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError as error:
        raise UsageError(
            "the cluster has no workers: start some, and run the same command to continue", ErrorKind.UNREACHABLE
        ) from error
    threads: dict[str, int] = client.nthreads()
    return max(1, sum(threads.values()))
