"""The command ``check``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ..errors import EquivalenceError, MemoptError, UsageError
from .exit_codes import BAD_INPUT, DONE, NOT_EQUAL, OVER_BUDGET, code_of
from .flags import flag_of, flags_of
from .shared import FORCE, JSON, TFLM_OF_FILE, check_files, file_option

if TYPE_CHECKING:
    from ..report.answer import Answer
    from ..report.repository import ModelRam

_POINTER = b"version https://git-lfs"


@click.command(short_help="Check the RAM of all models of a repository.")
@click.argument("models", nargs=-1, metavar="[MODEL|FOLDER|PATTERN]...")
@flags_of("check")
@TFLM_OF_FILE
@flag_of("budget", help="Exit with 3 if a model needs more RAM than this, such as 64K.")
@click.option(
    "--against",
    metavar="REVISION",
    help="Exit with 3 if a model needs more RAM than at this revision: a branch, tag, or commit of its Git repository.",
)
@file_option("--markdown", help="Also write a table for a comment in a pull request to this file.")
@file_option("--sarif", help="Also write what fails to this file, as SARIF 2.1.0 for code scanning.")
@JSON
@FORCE
def check(
    models: tuple[str, ...],
    target: str | None,
    kernels: str | None,
    tflm: str | None,
    budget: int | None,
    against: str | None,
    markdown: Path | None,
    sarif: Path | None,
    as_json: bool,
    force: bool,
) -> None:
    """Print the RAM that the given models need, or all models below the current folder but those of submodules.

    For pull requests and hooks: fails if a model is over the budget, needs more RAM than at a revision, cannot be
    run by TFLM, or computes wrongly with the kernels of the target.
    """
    from ..batch.find import find_models
    from ..model.io.files import write_files
    from ..report.repository import has_grown, ram_json, ram_markdown, ram_sarif, ram_text
    from ..run.parts.files import MANIFEST, programs_among

    listed = find_models(models or (".",))
    if against is not None:
        _check_revision(listed[0].path.parent, against)
    firmware = Firmware(target, kernels, tflm, budget)
    paths = programs_among(model.path for model in listed)
    manifests = (path / MANIFEST for path in paths if path.is_dir())
    check_files((markdown, sarif), (*(model.path for model in listed), *manifests), force)
    judged = [_row(path, _shown(path), firmware, against) for path in paths]
    rows = tuple(row for row, _ in judged)
    written = ((markdown, ram_markdown(rows, budget, _made_for(target, kernels))), (sarif, ram_sarif(rows)))
    write_files({path: text.encode() for path, text in written if path is not None})
    click.echo(ram_json(rows) if as_json else ram_text(rows), nl=False)
    codes = {OVER_BUDGET if code == DONE and has_grown(row) else code for row, code in judged}
    sys.exit(next(code for code in (NOT_EQUAL, BAD_INPUT, OVER_BUDGET, DONE) if code in codes))


def _made_for(target: str | None, kernels: str | None) -> str:
    if target is None and kernels is None:
        return "with the kernels that each file was made for (TFLM's own if it names none)"
    return f"on {target or 'a 32-bit target'}" + (f" with {kernels} kernels" if kernels else "")


def _shown(path: Path) -> str:
    """Return the path relative to the current folder, if the file is below it."""
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


class Firmware(NamedTuple):
    """What files are judged for. None: what each was made for."""

    target: str | None
    kernels: str | None
    tflm: str | None
    budget: int | None


def _row(path: Path, name: str, firmware: Firmware, against: str | None) -> tuple[ModelRam, int]:
    """Return the line on a model, and the exit code for it."""
    from ..model.io.files import read_file
    from ..report.repository import ModelRam
    from ..run.parts.console import answer_of_folder

    try:
        if path.is_dir():
            return _of_answer(name, answer_of_folder(path, firmware.target, firmware.budget), "")
        row, code = _judged(read_file(path), name, firmware)
    except MemoptError as error:
        code = NOT_EQUAL if isinstance(error, EquivalenceError) else BAD_INPUT
        return ModelRam(name, None, error=" ".join(str(error).split())), code
    data = None if against is None else _at(path, against)
    try:
        before = None if data is None else _judged(data, name, _made_like(path, firmware))[0].now
    except MemoptError:
        before = None  # not a model at that revision
    return replace(row, before=before), code


def _made_like(path: Path, firmware: Firmware) -> Firmware:
    """Return the firmware that the file of today was made for, so that its former content is judged for the same."""
    from ..memory.file import label_in_force
    from ..model.io.files import load
    from ..model.io.reader import read_model

    label = label_in_force(read_model(load(path)[0]))
    if label is None:
        return firmware
    made_for = None if firmware.kernels else label.device or label.target
    return firmware._replace(
        target=firmware.target or made_for, tflm=firmware.tflm or str(label.options.get("tflm") or "") or None
    )


def _judged(data: bytes, name: str, firmware: Firmware) -> tuple[ModelRam, int]:
    from ..api import analyze
    from ..report.summary import wrong_in_words

    analysis = analyze(data, firmware.kernels, firmware.target, firmware.tflm, firmware.budget)
    return _of_answer(name, analysis.answer, wrong_in_words(analysis))


def _of_answer(name: str, answer: Answer, error: str) -> tuple[ModelRam, int]:
    from ..report.repository import ModelRam
    from ..report.summary import said_of_fit

    code = code_of(answer)
    over = said_of_fit(answer, None) if code == OVER_BUDGET else ""
    notes = [f"{need:,} with {library}" for library, need in answer.most.items()]
    notes += ["an estimate"] if answer.is_estimate else []
    # What TFLM does not run, or reads without its weights, needs no RAM that could be named.
    now = None if answer.judgement in ("cannot run", "no weights") else answer.reserve
    return ModelRam(name, now, error=error, most=", ".join(notes), over=over), code


def _check_revision(folder: Path, revision: str) -> None:
    """Raise UsageError when there is no Git, no repository, or no such revision in it."""
    if revision.startswith("-"):
        raise UsageError(f"'{revision}' is not a revision")
    try:
        known = _git(folder, ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"))
    except OSError as error:
        raise UsageError(f"--against needs git, which cannot be started: {error.strerror}") from error
    if known is None:
        raise UsageError(f"the Git repository of '{folder}' has no revision '{revision}'; was it fetched?")


def _at(path: Path, revision: str) -> bytes | None:
    """Return the file at a revision; None if it does not exist there."""
    data = _git(path.parent, ("show", f"{revision}:./{path.name}"))
    if data is not None and data.startswith(_POINTER):
        return _git(path.parent, ("lfs", "smudge"), data)
    return data


def _git(folder: Path, arguments: Iterable[str], given: bytes = b"") -> bytes | None:
    """Return the output of a git command; None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=folder, input=given, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None
