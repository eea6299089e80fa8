"""One function of many items, computed by several processes: the answers of one process, in the same order."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")
_MOST = 4
"""Processes at most, where nobody says how many: each takes memory, and divisible work ends soon."""

_STANDSTILL_SECONDS = 30.0
"""A process that spends no time of a processor for so long does not compute: it is stuck."""


def usable_cores() -> int:
    """Return the number of processes that may run at a time on this machine, at most four."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    return min(_MOST, cores)


def side_by_side(function: Callable[[Item], Found], items: Sequence[Item], jobs: int) -> list[Found]:
    """``[function(item) for item in items]``, by up to ``jobs`` processes.

    They are copies of this one, so that nothing has to travel to them; changes that the function makes in them are
    lost, and its answers must pickle. Jobs without an answer are computed by this process: where a process has died or
    has come to a standstill, where the function has raised an exception, where the system gives no process. So the
    answers never depend on them.
    """
    found: dict[int, Found] = {}
    if min(jobs, len(items)) > 1 and _can_fork():
        with _processes(function, items, min(jobs, len(items))) as idle:
            _hand_out(found, len(items), idle)
    return [found[at] if at in found else function(item) for at, item in enumerate(items)]


def _can_fork() -> bool:
    """Other systems than Linux have no fork, or one that their libraries do not survive."""
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


def _hand_out(found: dict[int, Any], items: int, idle: list[Connection]) -> None:
    """Give each process one item after the other, until all have an answer or no process is left."""
    waiting = iter(range(items))
    busy = [process for process in idle if _is_given(process, waiting)]
    while busy:
        for process in wait(busy):
            assert isinstance(process, Connection)
            try:
                at, has_answer, answer = process.recv()
            except (EOFError, OSError):  # it has died
                busy.remove(process)
                continue
            if has_answer:
                found[at] = answer
            if not _is_given(process, waiting):
                busy.remove(process)


def _is_given(process: Connection, waiting: Iterator[int]) -> bool:
    """Tell whether there is an item left for it."""
    at = next(waiting, None)
    if at is None:
        return False
    with suppress(OSError):  # that it has died is seen when its answer is read
        process.send(at)
    return True


@contextmanager
def _processes(function: Callable[[Item], Found], items: Sequence[Item], count: int) -> Iterator[list[Connection]]:
    """Yield the connections to them; all are killed at the end, whatever happens.

    Nobody waits until the system has cleared their memory away: it does so beside what comes next, and multiprocessing
    takes note of it at the next start, or when this process ends.
    """
    context = multiprocessing.get_context("fork")
    started: list[ForkProcess] = []
    ends: list[Connection] = []
    try:
        with _deaf_to_interruptions(), suppress(OSError), warnings.catch_warnings():
            # Newer Pythons warn of threads: state of other threads, such as a console, is not touched in there.
            warnings.simplefilter("ignore", DeprecationWarning)
            for _ in range(count):
                own, other = context.Pipe()
                ends.append(own)
                process = context.Process(target=_answer, args=(function, items, other, tuple(ends)), daemon=True)
                process.start()
                other.close()
                started.append(process)
        with _ended_when_stuck(started):
            yield ends[: len(started)]
    finally:
        for process in started:
            process.kill()
        for end in ends:
            end.close()


@contextmanager
def _ended_when_stuck(processes: Sequence[ForkProcess]) -> Iterator[None]:
    """Inside, a process that stands still is killed: who reads its answer then sees that it is gone, and does its work.

    One may be stopped by a signal, or wait for a lock that a thread of this process held when it was copied.
    """
    is_over = threading.Event()
    watch = threading.Thread(target=_end_what_is_stuck, args=(processes, is_over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        is_over.set()
        watch.join()


def _end_what_is_stuck(processes: Sequence[ForkProcess], is_over: threading.Event) -> None:
    before: dict[ForkProcess, bytes | None] = {}
    while not is_over.wait(_STANDSTILL_SECONDS):
        for process in processes:
            spent = _processor_time(process)
            if process in before and spent == before[process]:
                process.kill()
            before[process] = spent


def _processor_time(process: ForkProcess) -> bytes | None:
    """Read the time that a process has spent, by itself and for itself; None once it is gone.

    Source: proc(5), utime and stime in /proc/PID/stat.
    """
    try:
        with open(f"/proc/{process.pid}/stat", "rb") as stream:
            return b" ".join(stream.read().rpartition(b")")[2].split()[11:13])
    except OSError:
        return None


@contextmanager
def _deaf_to_interruptions() -> Iterator[None]:
    """Block Ctrl-C, which a terminal sends to all processes, in processes that start here; deliver it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answer(
    function: Callable[[Item], Found], items: Sequence[Item], asked: Connection, others: Sequence[Connection]
) -> None:
    """In a process of its own: one item after the other, until this process is ended, or the one that asks is gone."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.disable()  # it would touch, and so copy, all memory that is shared; the process is a short one
    for each in others:
        each.close()  # else nobody would see that the process at that end is gone
    with suppress(EOFError, OSError):
        while True:
            at = asked.recv()
            try:
                answer: tuple[int, bool, Any] = (at, True, function(items[at]))
            except Exception:
                answer = (at, False, None)  # the caller computes it again, and sees the exception
            asked.send(answer)
