"""What a run may take of its machine, and how much memory a process and all that it started have resident."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_GROUP = Path("/sys/fs/cgroup")


def usable_processors() -> int:
    """Processors that this process may use: those it may run on, or fewer where its control group has a quota."""
    allowed = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, math.floor(min([float(allowed), *_group_quotas()])))


def physical_bytes() -> int | None:
    """Memory of this machine, or of the control group that this process is in; None where it is not known."""
    if sys.platform == "win32":
        return None
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_group_limits()])


def resident_bytes(process: int) -> int | None:
    """Bytes resident in a process and its descendants, shared pages counted in each; None where it is not known.

    That is everywhere but on Linux.
    """
    if sys.platform != "linux":
        return None
    return sum(map(_resident, processes_of(process)))


def _group_limits() -> Iterator[int]:
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # there is no such group, or its limit is "max"
            yield int((_GROUP / file).read_text())


def _group_quotas() -> Iterator[float]:
    """Processors that the control group may keep busy, if it is limited: version 2 has both numbers in one file."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError):  # there is no such group, or its limit is "max"
            quota, period = map(int, " ".join((_GROUP / file).read_text() for file in files).split())
            if quota > 0:
                yield quota / period


def processes_of(process: int) -> Iterator[int]:
    """A process and its descendants."""
    yield process
    try:
        for thread in (_PROC / str(process) / "task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from processes_of(int(child))
    except OSError:
        return  # it has ended meanwhile


def _resident(process: int) -> int:
    try:
        return int((_PROC / str(process) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
