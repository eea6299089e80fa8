"""The first Ctrl-C ends a search; what is complete before it goes on to be proved. The second one ends the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..graph.interrupted_search import InterruptedSearch
from ..options import Options, as_it_stands

_Made = TypeVar("_Made")


class Interruption:
    """What was interrupted, in words for the report: nothing, or one stage. ``is_kept``: there is something to keep."""

    def __init__(self, is_kept: bool, progress: Callable[[str], None]) -> None:
        self.said: list[str] = []
        self._is_kept, self._progress = is_kept, progress

    def during(self, what: str, options: Options, make: Callable[[Options], _Made]) -> tuple[_Made, Options]:
        """What ``make`` makes, and the options for what comes after.

        When it is interrupted, it is what the search had found by then; where that is nothing, it is made once more,
        without any search that is not needed. Raises KeyboardInterrupt when nothing is to be kept, and at the second
        interruption.
        """
        found: InterruptedSearch | None = None
        try:
            return make(options), options
        except KeyboardInterrupt as stopped:
            if not self._is_kept or self.said:
                raise
            found = stopped if isinstance(stopped, InterruptedSearch) else None
        self._say(what)
        quick = as_it_stands(options)
        return make(quick) if found is None else found.finish(), quick

    def beside(self, what: str, make: Callable[[], _Made]) -> _Made | None:
        """What ``make`` makes where there is a whole answer without it; None when it is interrupted.

        Raises KeyboardInterrupt when nothing is to be kept, and at the second interruption.
        """
        try:
            return make()
        except KeyboardInterrupt:
            if not self._is_kept or self.said:
                raise
        self._say(what)
        return None

    def _say(self, what: str) -> None:
        self.said.append(f"interrupted in {what}: only what was complete by then went into the result")
        self._progress(f"interrupted in {what}: going on with what is complete; interrupt once more to stop at once")
