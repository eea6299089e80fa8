"""The results of runs in one folder: lines of JSON, one for each model and set of options, and the optimized models.

The key of a line is the SHA-256 of the model's bytes and that of the options with the tool's version. A line is written
at once when its model is done, so that a run that was ended goes on after it. It has the SHA-256 of the optimized model
as well, by which a later run sees whether the file is still there and whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import ErrorKind, OutputError, UsageError
from ..model.io.files import check_apart, write_files
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


def key_of(options: Options, estimates: bool = False) -> str:
    """Return the key of everything that determines a result besides the model."""
    decisive = {"version": __version__, **asdict(options), **({"estimates": True} if estimates else {})}
    del decisive["jobs"]
    return sha256(json.dumps(decisive, default=str, sort_keys=True).encode()).hexdigest()


class Results:
    """The lines of a folder for one set of options, and the models in it, if it ``keeps_models``.

    ``estimates``: its lines are of costs that were estimated. ``lasting``: by content, lines of models that another try
    would not change. Raises OutputError when something cannot be read or written.
    """

    def __init__(self, folder: Path, options: Options, keeps_models: bool = True, estimates: bool = False) -> None:
        self._path, self._models, self._key = folder / RESULTS, folder / MODELS, key_of(options, estimates)
        self._keeps_models = keeps_models
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._is_torn = self._path.exists() and not self._path.read_bytes().endswith(b"\n")
            lines = [line for line in self._lines() if line["options"] == self._key]
        except OSError as error:
            raise OutputError(f"cannot use the folder '{folder}': {error.strerror or error}") from error
        self._files = {(line["model"], line["content"]) for line in lines}
        self.lasting = {line["content"]: line for line in lines if line["status"] in LASTING}

    def restore(self, files: Sequence[FoundModel], line: Line) -> bool:
        """Bring files of the same bytes to what the lasting ``line`` of one of them says; False: its model is lost.

        What is missing or damaged is copied from the file of another one that is whole.
        """
        model = None
        if self._keeps_models and line["sha256"] is not None:
            names = dict.fromkeys((*(file.name for file in files), line["model"]))
            files_read = filter(None, (_read(self._models / name) for name in names))
            model = next((data for data in files_read if sha256(data).hexdigest() == line["sha256"]), None)
            if model is None:
                return False
        for file in files:
            if (file.name, file.content) not in self._files or not self._holds(file.name, model):
                self.write(file, line, model)
        return True

    def write(self, found: FoundModel, outcome: Line, model: bytes | None) -> None:
        """Write the line of a file, and before it the optimized ``model``; None: that of other bytes is removed."""
        digest = None if model is None else sha256(model).hexdigest()
        line = {"sha256": digest, **outcome, "model": found.name, "content": found.content, "options": self._key}
        try:
            target = self._models / found.name
            if self._keeps_models and model is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                write_files({target: model})
            elif self._keeps_models:
                target.unlink(missing_ok=True)
            with self._path.open("ab") as file:
                file.write((b"\n" if self._is_torn else b"") + json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise OutputError(f"cannot write '{self._path}': {error.strerror or error}") from error
        self._is_torn = False
        self._files.add((found.name, found.content))
        if line["status"] in LASTING:
            self.lasting[found.content] = line

    def _holds(self, name: str, model: bytes | None) -> bool:
        return not self._keeps_models or _read(self._models / name) == model

    def _lines(self) -> Iterator[Line]:
        """Yield all whole lines: the last one may have been cut off."""
        for text in self._path.read_bytes().splitlines() if self._path.exists() else ():
            try:
                line = json.loads(text)
                line["model"], line["content"], line["options"], line["status"], line["sha256"]
            except (ValueError, TypeError, KeyError):
                continue
            yield line


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def refuse_mixing(folder: Path, models: Sequence[FoundModel], keeps_models: bool) -> None:
    """Raise UsageError where results would be written over the models, by whatever links."""
    target = (folder / MODELS).resolve()
    if keeps_models and any(target in model.path.resolve().parents for model in models):
        raise UsageError(
            f"'{folder / MODELS}' would receive the results, but it holds the models: give another OUT",
            ErrorKind.IS_INPUT,
        )
    made = [folder / MODELS / model.name for model in models if keeps_models]
    check_apart((folder / RESULTS, *made), [model.path for model in models])
