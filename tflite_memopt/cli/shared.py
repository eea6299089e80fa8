"""Shared by several commands: options, progress on stderr, results on stdout, files with pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import StringIO
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

from .flags import flag_of
from .types import GivenMemories, ModelPath, Value, given_memories

if TYPE_CHECKING:
    from rich.console import RenderableType


QUIET = click.option(
    "-q/ ",
    "--quiet/--progress",
    "quiet",
    default=None,
    help="Hide or show progress; -q also shortens the output. [default: progress on a terminal]",
)
VERBOSE = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also print all figures as tables, and every change that was made or refused, with the reason.",
)
FORCE = click.option("--force", is_flag=True, help="Replace existing files; the input by -o alone.")
file_option = partial(click.option, type=ModelPath, metavar="FILE")
"""The decorator of an option that takes a file or folder."""
JSON = click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
TFLM_OF_FILE = flag_of(
    "tflm",
    help="TFLM of the firmware, as for `optimize`. [default: the one that the file was made for; for other files as "
    "for `optimize`]",
)


@contextmanager
def progress_line(quiet: bool | None) -> Iterator[Callable[[str], None]]:
    """Report the progress of a run on stderr: on a terminal as one live line, elsewhere as lines.

    ``quiet``: True for nothing; False for a line a stage; None for a line after five seconds of silence. A message is
    "stage: how far", or a stage alone. No share of the run is shown: how many searches are to come is not known.
    """
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
        with Progress(*columns, console=Console(stderr=True), transient=True) as live:
            task = live.add_task("starting", total=None)
            yield lambda message: live.update(task, description=escape(message))
    else:
        last_stage, last_time = "", monotonic()

        def say(message: str) -> None:
            nonlocal last_stage, last_time
            stage = message.partition(":")[0]
            is_due = monotonic() - last_time > _SILENCE if quiet is None else stage != last_stage
            if is_due:
                last_stage, last_time = stage, monotonic()
                click.echo(f"{message} ...", err=True)

        yield say


def show(renderable: RenderableType, columns: int | None = None) -> None:
    """Print a table or text; ``columns``: of a pipe, None where no line is wrapped."""
    from rich.console import Console

    console = Console()
    if console.is_terminal:
        console.print(renderable)
        return
    # A pipe has no width: no line is wrapped, and none is padded.
    text = StringIO()
    Console(file=text, width=columns or _WIDEST).print(renderable)
    click.echo("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


_WIDEST = 10_000
_SILENCE = 4.0
"""Seconds without a word, in a pipe, after which the next message is printed."""


def check_files(
    paths: Iterable[Path | None], sources: Iterable[Path | None], force: bool, result: Path | None = None
) -> None:
    """Raise UsageError early, before any work, when one of the output files could not be written; None: not given.

    ``result``: the output that may replace the first of ``sources``.
    """
    from ..model.io.files import check_targets

    targets, read = ([path for path in given if path is not None] for given in (paths, sources))
    check_targets(targets, read, force, result)


MEMORY = click.option(
    "--memory",
    "memories",
    type=Value(given_memories),
    multiple=True,
    metavar="NAME=SIZE[@PRICE]|CHIP",
    help="Memory of the chip, such as dtcm=64K; repeat it for more, the fastest first, or name a chip that "
    "`targets` lists. Tensors are spread so that few bytes move through slower memories. psram=8M@4: a byte "
    "there counts 4 times (default: once).",
)


def memories_of(given: tuple[GivenMemories, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes by name, and prices by name where there are some, from the values of ``--memory``."""
    memories = tuple(chain.from_iterable(given))
    names = [memory.name for memory in memories]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"--memory {name} is given twice")
    sizes = {memory.name: memory.bytes for memory in memories}
    return sizes, {memory.name: memory.price for memory in memories if memory.price is not None}
