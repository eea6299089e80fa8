"""The results of runs in one folder: lines of JSON, one for each model and set of options, and the optimized models.

The key of a line is the SHA-256 of the model's bytes and that of the options with the tool's version. A line is written
at once when its model is done, so that a run that was ended goes on after it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import ErrorKind, OutputError, UsageError
from ..model.io.files import write_files
from ..options import Options
from ..version import __version__
from .find import FoundModel

RESULTS = "results.jsonl"
MODELS = "models"
"""The folder of the optimized models, beside it, under the paths of the originals."""
DONE, UNRUNNABLE, REFUSED, FAILED, LOST = "done", "TFLM cannot run it", "refused", "failed", "lost"
"""``refused``: an error that names the defect of the model. ``failed``: a bug of this tool. ``lost``: the
processes that worked on it died again and again, of memory or by a crash."""
LASTING = (DONE, UNRUNNABLE, REFUSED)
"""Another run under the same options ends in the same status."""
Line = dict[str, Any]


def key_of(options: Options) -> str:
    """Return the key of everything that determines a result besides the model."""
    decisive = {"version": __version__, **asdict(options)}
    del decisive["jobs"]
    return sha256(json.dumps(decisive, default=str, sort_keys=True).encode()).hexdigest()


class Results:
    """The lines of a folder for one set of options. Raises OutputError when they cannot be read or written."""

    def __init__(self, folder: Path, options: Options) -> None:
        self._path, self._models, self._key = folder / RESULTS, folder / MODELS, key_of(options)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._is_torn = self._path.exists() and not self._path.read_bytes().endswith(b"\n")
            lines = [line for line in self._lines() if line["options"] == self._key]
        except OSError as error:
            raise OutputError(f"cannot use the folder '{folder}': {error.strerror or error}") from error
        self._files = {(line["model"], line["content"]) for line in lines}
        self._lasting = {line["content"]: line for line in lines if line["status"] in LASTING}

    def lasting(self, content: str) -> Line | None:
        """Return the line of a model of these bytes that another try would not change."""
        return self._lasting.get(content)

    def has(self, model: FoundModel) -> bool:
        """Return whether there is a line under the model's own path."""
        return (model.name, model.content) in self._files

    def model_of(self, line: Line) -> bytes | None:
        """Return the optimized model of a line; None where it was not kept."""
        path = self._models / line["model"]
        return path.read_bytes() if path.is_file() else None

    def write(self, found: FoundModel, outcome: Line, model: bytes | None) -> None:
        """Write the line of a file, and the optimized ``model`` before it; None: it is not kept."""
        line = {**outcome, "model": found.name, "content": found.content, "options": self._key}
        try:
            if model is not None:
                target = self._models / found.name
                target.parent.mkdir(parents=True, exist_ok=True)
                write_files({target: model})
            with self._path.open("ab") as file:
                file.write((b"\n" if self._is_torn else b"") + json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise OutputError(f"cannot write '{self._path}': {error.strerror or error}") from error
        self._is_torn = False
        self._files.add((found.name, found.content))
        if line["status"] in LASTING:
            self._lasting[found.content] = line

    def _lines(self) -> Iterator[Line]:
        """Yield all whole lines: the last one may have been cut off."""
        for text in self._path.read_bytes().splitlines() if self._path.exists() else ():
            try:
                line = json.loads(text)
                line["model"], line["content"], line["options"], line["status"]
            except (ValueError, TypeError, KeyError):
                continue
            yield line


def refuse_mixing(folder: Path, models: Sequence[FoundModel]) -> None:
    """Raise UsageError where results would be written over the models."""
    target = Path(os.path.abspath(folder), MODELS)
    if any(target in model.path.parents for model in models):
        raise UsageError(
            f"'{folder / MODELS}' would receive the results, but it holds the models: give another OUT",
            ErrorKind.IS_INPUT,
        )
