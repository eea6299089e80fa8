"""Costs and structures of earlier calls, in one SQLite file that processes share."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ..errors import OutputError
from ..version import __version__

_PATIENCE = 60.0
"""Seconds to wait while another process writes."""


def default_store() -> Path:
    """Return the file of this user's cache."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "tflite_memopt" / "costs.sqlite"


class Store:
    """Bytes by text keys; those of another version of the tool are not seen. Raises OutputError for a file that fails.

    ``path``: None for a store that keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open(path)) as file, file:
                file.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB NOT NULL)")
        except (OSError, sqlite3.Error) as error:
            raise OutputError(f"cannot use the cache '{path}': {error}; give another one, or None") from error

    def __getitem__(self, key: str) -> bytes | None:
        if self._path is None:
            return None
        with closing(self._open(self._path)) as file:
            row = file.execute("SELECT value FROM kept WHERE key = ?", (_versioned(key),)).fetchone()
        return None if row is None else bytes(row[0])

    def __setitem__(self, key: str, value: bytes) -> None:
        if self._path is None:
            return
        with closing(self._open(self._path)) as file, file:
            file.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (_versioned(key), value))

    @staticmethod
    def _open(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=_PATIENCE)


def _versioned(key: str) -> str:
    return f"{__version__} {key}"
