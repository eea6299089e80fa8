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
    "--budget", type=ByteSize(), metavar="SIZE", help="Exit with 3 when a model needs more than this, such as 64K."
)
@click.option(
    "--against",
    metavar="REVISION",
    help="Exit with 3 when a model needs more than it did there: a branch, a tag or a commit of the Git repository "
    "that it is in.",
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
    """Tell the RAM of every model that is named, or of all below this folder, as the files stand.

    For pull requests and hooks: it fails when a model is over the budget, or needs more than at a revision.
    """
    from ..batch.find import find_models
    from ..io.files import write_files
    from ..report.repository import has_grown, is_over, ram_markdown, ram_text

    check_files((markdown,), (), force)
    found = find_models(models or (".",))
    if against is not None:
        _check_revision(found[0].path.parent, against)
    rows = tuple(_row(each.path, _shown(each.path), target, kernels, against) for each in found)
    if markdown is not None:
        write_files({markdown: ram_markdown(rows, budget, _made_for(target, kernels)).encode()})
    click.echo(ram_text(rows, budget), nl=False)
    if any(row.error for row in rows):
        sys.exit(BAD_INPUT)
    sys.exit(OVER_BUDGET if any(is_over(row, budget) or has_grown(row) for row in rows) else 0)


def _made_for(target: str | None, kernels: str | None) -> str:
    if target is None and kernels is None:
        return "with the kernels that each file was made for, TFLM's own where it names none"
    return f"on {target or 'a 32-bit target'}" + (f" with {kernels} kernels" if kernels else "")


def _shown(path: Path) -> str:
    """From the folder that the command runs in, where the file is below it."""
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
        return ModelRam(name, now)  # it was no model there


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
        raise UsageError(f"'{revision}' is no revision")
    try:
        known = _git(folder, ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"))
    except OSError as error:
        raise UsageError(f"--against needs git, which cannot be started: {error.strerror}") from error
    if known is None:
        raise UsageError(f"the Git repository of '{folder}' has no revision '{revision}'; was it fetched?")


def _at(path: Path, revision: str) -> bytes | None:
    """The file at a revision; None where it is not there."""
    data = _git(path.parent, ("show", f"{revision}:./{path.name}"))
    if data is not None and data.startswith(_POINTER):
        return _git(path.parent, ("lfs", "smudge"), data)
    return data


def _git(folder: Path, arguments: Iterable[str], given: bytes = b"") -> bytes | None:
    """Return the output of a git command; None where it fails."""
    done = subprocess.run(["git", *arguments], cwd=folder, input=given, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None
