"""An interruption of a search that has something to hand over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class InterruptedSearch(KeyboardInterrupt):
    """Ctrl-C during a search. ``finish`` makes the search's result of the best that it had by then.

    Who does not look for it sees the interruption that it is.
    """

    def __init__(self, finish: Callable[[], Any]) -> None:
        super().__init__()
        self.finish = finish
