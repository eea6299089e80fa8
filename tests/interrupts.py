"""Ctrl-C in tests that may run in the background."""

from __future__ import annotations

import signal


def heed_interrupts() -> None:
    """A suite that a shell runs in the background starts its children with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
