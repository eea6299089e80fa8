"""The results of a run, in one SQLite file: a row for each model and set of options. One process writes it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..errors import OutputError, UsageError
from ..options import Options
from ..report.model_rows import ModelRow, row_of
from ..version import __version__
from .find import FoundModel
from .job import DONE, LASTING, ModelOutcome

FILE_NAME = "results.sqlite"
MODELS = "models"
"""The folder, beside it, of the optimized models."""
_FORMAT = 2
_TABLES = """
CREATE TABLE option_sets (options TEXT PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE files (name TEXT PRIMARY KEY, content TEXT NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE results (
    content TEXT NOT NULL, options TEXT NOT NULL REFERENCES option_sets, name TEXT NOT NULL,
    status TEXT NOT NULL, error TEXT, before INTEGER, after INTEGER, saved INTEGER, slowdown REAL,
    limits TEXT, report TEXT,
    seconds REAL NOT NULL, times TEXT NOT NULL, worker TEXT NOT NULL, finished TEXT NOT NULL,
    PRIMARY KEY (content, options)
);
CREATE TABLE events (at TEXT NOT NULL, what TEXT NOT NULL);
"""
COMPARED = ("content", "options", "name", "status", "error", "before", "after", "saved", "slowdown", "limits", "report")
"""Columns that are the same on every machine and with any number of workers."""
TIMED = ("seconds", "times", "worker", "finished")
"""Columns that tell of one run only."""


class ResultStore:
    """The file of results of one folder; made by :func:`open_store`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def keep_options(self, options: Options) -> str:
        """The key of a set of options, which is kept with its fields: SHA-256 of those and of the tool's version."""
        fields = {"version": __version__, **dataclasses.asdict(options)}
        for name in ("jobs", "until"):  # they change no result
            del fields[name]
        text = json.dumps(fields, default=str, sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()
        self._change("INSERT OR IGNORE INTO option_sets VALUES (?, ?)", (key, text))
        return key

    def keep_files(self, models: Iterable[FoundModel]) -> None:
        """Keep which content each file has now."""
        rows = [(model.name, model.content, model.nbytes) for model in models]
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)

    def has(self, options: str, and_failures: bool) -> set[str]:
        """The contents that have a row under these options; ``and_failures``: also those that another try may help."""
        found = self._connection.execute("SELECT content, status FROM results WHERE options = ?", (options,))
        return {content for content, status in found if and_failures or status in LASTING}

    def without_result(self, options: str) -> set[str]:
        """The contents whose row under these options holds no result."""
        found = self._connection.execute(
            "SELECT content FROM results WHERE options = ? AND status != ?", (options, DONE)
        )
        return {content for (content,) in found}

    def record(self, options: str, name: str, outcome: ModelOutcome) -> bool:
        """Write what became of a model, whole or not at all. False, and nothing changed, where it is done already."""
        row = row_of(name, outcome.content, options, outcome.status, outcome.error, outcome.report)
        compared = [getattr(row, column) for column in COMPARED]
        timed = [outcome.seconds, json.dumps(outcome.times), outcome.worker, _moment()]
        marks = ", ".join("?" * (len(compared) + len(timed)))
        names = ", ".join((*COMPARED, *TIMED))
        again = ", ".join(f"{column} = excluded.{column}" for column in (*COMPARED[2:], *TIMED))
        lasting = ", ".join(f"'{status}'" for status in LASTING)
        written = self._change(
            f"INSERT INTO results ({names}) VALUES ({marks}) ON CONFLICT (content, options) "
            f"DO UPDATE SET {again} WHERE results.status NOT IN ({lasting})",
            (*compared, *timed),
        )
        return written > 0

    def note(self, what: str) -> None:
        """Write down an event that belongs to no single model."""
        self._change("INSERT INTO events VALUES (?, ?)", (_moment(), what))

    def events(self) -> list[str]:
        """All that was noted, oldest first."""
        return [what for (what,) in self._connection.execute("SELECT what FROM events ORDER BY rowid")]

    def rows(self) -> Iterator[ModelRow]:
        """A row for each file and set of options, by name."""
        query = (
            "SELECT files.name, content, options, status, error, before, after, slowdown, limits, report "
            "FROM results JOIN files USING (content) ORDER BY files.name, options"
        )
        return (ModelRow(*row) for row in self._connection.execute(query))

    def table(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of columns and the rows as they are stored, ordered by content and options."""
        found = self._connection.execute("SELECT * FROM results ORDER BY content, options")
        return [column[0] for column in found.description], found.fetchall()

    def _change(self, statement: str, values: tuple[Any, ...]) -> int:
        with self._connection:
            return self._connection.execute(statement, values).rowcount


@contextmanager
def open_store(folder: Path, is_new: bool = False) -> Iterator[ResultStore]:
    """The results in ``folder``; ``is_new``: there are none yet, and the file is made.

    Raises UsageError when there is no such file, or one of another program or version; OutputError when it cannot be
    written.
    """
    path = folder / FILE_NAME
    if not is_new and not path.is_file():
        raise UsageError(f"there are no results in '{folder}': {FILE_NAME} is missing; tflite-memopt batch writes it")
    try:
        connection = sqlite3.connect(path, timeout=30.0)
        try:
            _prepare(connection, path, is_new)
            yield ResultStore(connection)
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise OutputError(f"the results in '{path}' cannot be read or written: {error}") from error


def _prepare(connection: sqlite3.Connection, path: Path, is_new: bool) -> None:
    if is_new:
        # A reader sees whole rows while a run goes on, and a crash of the machine loses the last rows at most.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"{_TABLES} PRAGMA user_version = {_FORMAT};")
    connection.execute("PRAGMA synchronous = NORMAL")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != _FORMAT:
        raise UsageError(f"'{path}' is of format {version}, this version reads {_FORMAT}: give another folder")


def remove_results(folder: Path) -> None:
    """Remove the results in a folder: the models that were written for its rows, and the file with what SQLite keeps.

    Files that no row knows of stay, and so do their folders.
    """
    for name in _names_in(folder / FILE_NAME):
        written = folder / MODELS / name
        written.unlink(missing_ok=True)
        for parent in written.relative_to(folder).parents[:-1]:
            with contextlib.suppress(OSError):  # it holds other files
                (folder / parent).rmdir()
    for name in (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"):
        (folder / name).unlink(missing_ok=True)


def _names_in(path: Path) -> list[str]:
    """The models of a file of results of any version; none where it cannot be read."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM files")]
    except sqlite3.DatabaseError:
        return []
    return [name for name in names if not os.path.isabs(name) and ".." not in name.split("/")]


def has_store(folder: Path) -> bool:
    """Whether a folder holds results."""
    return os.path.lexists(folder / FILE_NAME)


def _moment() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
