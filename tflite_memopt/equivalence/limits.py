"""What an interpreter process may take, and that it never outlives the tool."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from dataclasses import dataclass

TIMEOUT_SECONDS = 900.0
_DIE_WITH_PARENT = 1
"""``PR_SET_PDEATHSIG`` of Linux's prctl."""


@dataclass(frozen=True)
class ProcessLimits:
    """For each interpreter process: ``seconds`` for one job, ``memory_bytes`` of address space (None: no limit)."""

    seconds: float = TIMEOUT_SECONDS
    memory_bytes: int | None = 16 << 30


def address_space_is_limited() -> bool:
    """Whether a shell (``ulimit -v``) or anybody else limits the address space of this process."""
    if sys.platform == "win32":
        return False
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def apply_in_process(memory_bytes: int, parent: int) -> None:
    """Called by the process itself, first of all; ``memory_bytes`` 0 is no limit. ``parent`` is who started it.

    On Linux the kernel ends it with its parent; elsewhere it ends at its next read.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tool decides, Ctrl-C goes to the whole group
    if memory_bytes and sys.platform != "win32":
        import resource

        # A shell may have set a lower limit, which nobody but root may raise.
        allowed = resource.getrlimit(resource.RLIMIT_AS)[1]
        least = memory_bytes if allowed == resource.RLIM_INFINITY else min(memory_bytes, allowed)
        resource.setrlimit(resource.RLIMIT_AS, (least, least))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)
