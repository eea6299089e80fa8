"""How much memory a process and all that it started have resident. Linux only; elsewhere nothing is known."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def physical_bytes() -> int | None:
    """Memory of this machine, or of the control group that this process is in; None where it is not known."""
    if sys.platform == "win32":
        return None
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_group_limits()])


def resident_bytes(process: int) -> int | None:
    """Bytes resident in a process and its descendants, shared pages counted in each; None where it is not known."""
    if sys.platform != "linux":
        return None
    return sum(map(_resident, _tree(process)))


def _group_limits() -> Iterator[int]:
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # there is no such group, or its limit is "max"
            yield int((Path("/sys/fs/cgroup") / file).read_text())


def _tree(process: int) -> Iterator[int]:
    yield process
    try:
        for thread in (_PROC / str(process) / "task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from _tree(int(child))
    except OSError:
        return  # it has ended meanwhile


def _resident(process: int) -> int:
    try:
        return int((_PROC / str(process) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
