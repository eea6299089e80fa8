"""The first Ctrl-C ends a search; what is complete before it goes on to be verified. The second one ends the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .graph.interrupted_search import InterruptedSearch
from .options import Options, as_it_stands

_Made = TypeVar("_Made")


class Interruption:
    """``search``: what was interrupted, None as long as nothing was. ``is_kept``: there is something to keep."""

    def __init__(self, is_kept: bool, progress: Callable[[str], None]) -> None:
        self.search: str | None = None
        self._is_kept, self._progress = is_kept, progress

    def during(self, search: str, options: Options, make: Callable[[Options], _Made]) -> _Made:
        """What ``make`` makes with the options; after an interruption without any search that is not needed.

        When it is interrupted, it is what the search had found by then; where that is nothing, it is made once more.
        Raises KeyboardInterrupt when nothing is to be kept, and at the second interruption.
        """
        try:
            return make(options if self.search is None else as_it_stands(options))
        except KeyboardInterrupt as stopped:
            self._note(search, stopped)
            found = stopped
        return found.finish() if isinstance(found, InterruptedSearch) else make(as_it_stands(options))

    def beside(self, search: str, make: Callable[[], _Made]) -> _Made | None:
        """What ``make`` makes where there is a whole answer without it; None when it is interrupted.

        Raises as ``during``.
        """
        try:
            return make()
        except KeyboardInterrupt as stopped:
            self._note(search, stopped)
            return None

    def _note(self, search: str, stopped: KeyboardInterrupt) -> None:
        if not self._is_kept or self.search is not None:
            raise stopped
        self.search = search
        self._progress(f"interrupted in {search}: going on with what is complete; interrupt once more to stop at once")
