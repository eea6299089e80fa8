"""The look at the original in a thread of its own, while the search goes on: the interpreters are processes anyway."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..io.reader import read_model
from ..options import Options
from .original import Original
from .pool import Interpreters
from .proof import inspect_on, open_for


class LookBeside:
    """Begins at once, on ``interpreters`` that are there. They stay when it is over: the proof can take them."""

    def __init__(self, interpreters: Interpreters, data: bytes, options: Options) -> None:
        self.interpreters = interpreters
        self._data, self._options = data, options
        self._found: Original | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        try:
            self._found = inspect_on(self.interpreters, self._data, self._options)
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
        """End the interpreters, and the look if it is not over."""
        self.interpreters.close()
        self._thread.join()


@contextmanager
def looking_beside(data: bytes, options: Options) -> Iterator[LookBeside]:
    """The look at the original goes on inside; it is over at the end, and its interpreters are gone."""
    with open_for(options, read_model(data)) as interpreters:
        look = LookBeside(interpreters, data, options)
        try:
            yield look
        finally:
            look.give_up()
