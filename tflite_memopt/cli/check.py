"""The command ``check``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import MemoptError, UnsupportedModelError, UsageError
from .exit_codes import BAD_INPUT, OVER_BUDGET
from .shared import FORCE, KERNELS, TARGET, check_files
from .types import ByteSize, ModelPath

if TYPE_CHECKING:
    from ..report.repository import ModelRam

_POINTER = b"version https://git-lfs"


@click.command(short_help="Check the RAM of all models of a repository.")
@click.argument("models", nargs=-1, metavar="[MODEL|FOLDER|PATTERN]...")
@TARGET
@KERNELS
@click.option(
    "--budget", type=ByteSize(), metavar="SIZE", help="Exit with 3 if a model needs more RAM than this, such as 64K."
)
@click.option(
    "--against",
    metavar="REVISION",
    help="Exit with 3 if a model needs more RAM than at this revision: a branch, tag, or commit of its Git repository.",
)
@click.option(
    "--markdown",
    type=ModelPath,
    metavar="FILE",
    help="Also write a table for a comment in a pull request to this file.",
)
@FORCE
def check(
    models: tuple[str, ...],
    target: str | None,
    kernels: str | None,
    budget: int | None,
    against: str | None,
    markdown: Path | None,
    force: bool,
) -> None:
    """Print the RAM of the given models, or of all models below this folder, as the files are.

    For pull requests and hooks: fails if a model is over the budget, or needs more RAM than at a revision.
    """
    from ..batch.find import find_models
    from ..io.files import write_files
    from ..report.repository import has_grown, is_over, ram_markdown, ram_text

    check_files((markdown,), (), force)
    listed = find_models(models or (".",))
    if against is not None:
        _check_revision(listed[0].path.parent, against)
    rows = tuple(_row(each.path, _shown(each.path), target, kernels, against) for each in listed)
    if markdown is not None:
        write_files({markdown: ram_markdown(rows, budget, _made_for(target, kernels)).encode()})
    click.echo(ram_text(rows, budget), nl=False)
    if any(row.error for row in rows):
        sys.exit(BAD_INPUT)
    sys.exit(OVER_BUDGET if any(is_over(row, budget) or has_grown(row) for row in rows) else 0)


def _made_for(target: str | None, kernels: str | None) -> str:
    if target is None and kernels is None:
        return "with the kernels that each file was made for (TFLM's own if it names none)"
    return f"on {target or 'a 32-bit target'}" + (f" with {kernels} kernels" if kernels else "")


def _shown(path: Path) -> str:
    """Return the path relative to the current folder, if the file is below it."""
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def _row(path: Path, name: str, target: str | None, kernels: str | None, against: str | None) -> ModelRam:
    from ..io.files import read_file
    from ..report.repository import ModelRam

    try:
        now = _ram(read_file(path), target, kernels)
    except MemoptError as error:
        return ModelRam(name, None, error=" ".join(str(error).split()))
    data = None if against is None else _at(path, against)
    try:
        return ModelRam(name, now, None if data is None else _ram(data, target, kernels))
    except MemoptError:
        return ModelRam(name, now)  # not a model at that revision


def _ram(data: bytes, target: str | None, kernels: str | None) -> int:
    from ..kernels.support import said_of
    from ..measuring import analyze

    analysis = analyze(data, kernels, target)
    if not analysis.tflm.runs:
        raise UnsupportedModelError(said_of(analysis.tflm))
    return analysis.memory.required_for_target


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
