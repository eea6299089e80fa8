"""The models of a run: matched by patterns, distinguished by content, largest first."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ErrorKind, UsageError

_SUFFIX = ".tflite"
_PIECE = 1 << 20


@dataclass(frozen=True)
class FoundModel:
    """A file. ``name``: its path from the folder that all models of the run are in, with ``/`` on every system.

    ``content``: SHA-256 of its bytes, in hexadecimal.
    """

    path: Path
    name: str
    content: str
    nbytes: int


def find_models(patterns: Sequence[str]) -> tuple[FoundModel, ...]:
    """Return the models that patterns, files and folders name, by name.

    ``**`` stands for any folders. Of a folder, all files that end in .tflite are meant, except those in virtual
    environments, in Git repositories below it such as submodules, and behind symbolic links. Raises UsageError when
    there are none.
    """
    paths = sorted({Path(os.path.abspath(path)) for pattern in patterns for path in _paths(pattern)})
    if not paths:
        folders = [pattern for pattern in patterns if os.path.isdir(pattern)]
        where = f"no {_SUFFIX} file in '{folders[0]}'" if folders else f"no model matches {' or '.join(patterns)}"
        raise UsageError(where, ErrorKind.NOT_A_FILE)
    top = Path(os.path.commonpath([path.parent for path in paths]))
    return tuple(_found(path, top) for path in paths)


def _paths(pattern: str) -> Iterator[str]:
    if os.path.isdir(pattern):
        yield from _below(pattern)
    elif os.path.isfile(pattern):
        yield pattern
    else:
        yield from (path for path in glob.iglob(pattern, recursive=True) if os.path.isfile(path))


def _below(folder: str) -> Iterator[str]:
    """Yield the models of a folder and the folders in it.

    A virtual environment has a pyvenv.cfg, a repository a folder ``.git``, and a submodule a file of that name.
    """
    for where, folders, files in os.walk(folder):
        if "pyvenv.cfg" in files or (where != folder and ".git" in (*files, *folders)):
            folders.clear()
            continue
        yield from (
            os.path.join(where, file)
            for file in files
            if file.endswith(_SUFFIX) and not os.path.islink(os.path.join(where, file))
        )


def _found(path: Path, top: Path) -> FoundModel:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
        size = path.stat().st_size
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror or error}") from error
    return FoundModel(path, path.relative_to(top).as_posix(), digest.hexdigest(), size)
