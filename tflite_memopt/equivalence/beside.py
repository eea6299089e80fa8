"""The look at the original in a thread of its own, while the search goes on: the interpreters are processes anyway."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..options import Options
from .original import Original
from .pool import Interpreters
from .proof import inspect_on, open_for


class LookBeside:
    """Begins at once. Interpreters end with the thread that started them, so that all of it happens in one."""

    def __init__(self, data: bytes, options: Options) -> None:
        self._data, self._options = data, options
        self._found: Original | None = None
        self._error: Exception | None = None
        self._interpreters: Interpreters | None = None
        self._is_given_up = False
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        try:
            with open_for(self._options) as self._interpreters:
                if not self._is_given_up:
                    self._found = inspect_on(self._interpreters, self._data, self._options)
        except Exception as error:
            self._error = error

    def check(self) -> None:
        """Raise what the look has raised by now."""
        if self._error is not None:
            raise self._error

    def found(self) -> Original:
        """What it found; waits for it. Raises as :func:`inspect`."""
        self._thread.join()
        self.check()
        assert self._found is not None
        return self._found

    def give_up(self) -> None:
        """End it, and its interpreters with it."""
        self._is_given_up = True
        if self._interpreters is not None and self._thread.is_alive():
            self._interpreters.close()
        self._thread.join()


@contextmanager
def looking_beside(data: bytes, options: Options) -> Iterator[LookBeside]:
    """The look at the original goes on inside, and is over at the end."""
    look = LookBeside(data, options)
    try:
        yield look
    finally:
        look.give_up()
