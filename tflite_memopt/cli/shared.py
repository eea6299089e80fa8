"""Shared by several commands: options, progress on stderr, results on stdout, files with pictures."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from ..kernels.profiles import PROFILES
from ..options import EFFORTS, OBJECTIVES, Options
from .types import GivenMemories, IoWord, MemoryType, ModelPath, Percent, TargetName, TflmName

if TYPE_CHECKING:
    from rich.console import RenderableType


KERNELS = click.option(
    "--kernels",
    type=click.Choice(list(PROFILES)),
    help="Kernel library that your firmware links, if it is not the usual one of your --target. portable: correct with "
    "any. A file made for one library may compute wrongly with another. [default: the usual one "
    "of --target; portable without a target]",
)
TARGET = click.option(
    "--target",
    type=TargetName(),
    help="Your board, chip, or core, such as pico, nrf52840, or cortex-m4; 'tflite-memopt targets' lists all. It "
    "determines the kernels, the RAM, and the exact size to reserve. [default: any]",
)

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
JSON = click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
SEED = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=Options.seed,
    show_default=True,
    help="Seed of random choices; equal seeds give equal results.",
)
RUNNER = click.option(
    "--runner",
    metavar="COMMAND",
    help="Command that runs models on your own kernels, a board, or an emulator, to verify B.tflite there as well; "
    "codegen --write-runner writes the source of one.",
)
SAMPLES = click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=Options.samples,
    help="Number of inputs to compare on every runtime: extremes, then random ones. [default: 10 to 30, fewer for "
    "larger models; 30 if no proof covers all inputs]",
)
APPROXIMATE = click.option(
    "--allow-approximate",
    is_flag=True,
    help="Allow changes that round integers differently. Outputs may then differ; the report says how much.",
)
KEEP_QUANTIZED = click.option(
    "--keep-quantized",
    is_flag=True,
    help="Leave constants quantized that the model dequantizes in each run. Without it they are stored in float32, "
    "which takes more flash and no RAM. Those that TFLM cannot dequantize rightly are stored in float32 all the same.",
)
TFLM = click.option(
    "--tflm",
    type=TflmName(),
    metavar="NAME|DAY",
    help="TFLM of the firmware: a packaged copy such as zephyr-4.2, arduino-2023, edge-impulse, or esphome, or the day "
    "of its source, such as 2025-11-10. A model that it cannot run is refused, newer operators are not used, and the "
    "size to reserve is for this build. 'tflite-memopt targets' lists all. [default: Arduino's for an Arduino board, "
    "otherwise the latest TFLM, built by its makefile]",
)
TFLM_OF_FILE = click.option(
    "--tflm",
    type=TflmName(),
    metavar="NAME|DAY",
    help="TFLM of the firmware, as for `optimize`. [default: the one that the file was made for; for other files as "
    "for `optimize`]",
)
IO_TYPES = click.option(
    "--io",
    type=IoWord(),
    multiple=True,
    metavar="keep|int8|channels-last[=NAME]",
    help="keep: inputs and outputs stay as they are. int8: the model takes and returns the integers that it "
    "computes with; your code must quantize inputs and read integer outputs. channels-last: images and sequences with "
    "their channels first, as PyTorch has them, are taken and returned with channels last, as cameras deliver them, "
    "where that saves a TRANSPOSE; =NAME: this input or output alone. Repeat it to combine them. [default: keep]",
)
MAX_SLOWDOWN = click.option(
    "--max-slowdown",
    type=Percent(),
    default=f"{100 * Options.max_slowdown:g}",
    show_default=True,
    metavar="PERCENT",
    help="Limit on added run time, in percent, estimated in instructions of the target's kernels; without a target, of "
    "every measured library.",
)
CHANGED: Mapping[str, dict[str, Any]] = {
    "order": {"rewrite": False, "cascade": False},
    "rewrites": {"cascade": False},
    "stripes": {},
    "all": {"every_byte": True},
}
"""Fields of :class:`Options` by the value of ``--changes``."""
CHANGES = click.option(
    "--changes",
    type=click.Choice(list(CHANGED)),
    default="stripes",
    show_default=True,
    help="Changes that are allowed. order: only the operator order and the tensor offsets. rewrites: also the "
    "graph. stripes: also run groups of layers a few rows at a time; new operator kinds, or a newer TFLM, must "
    "save 5 % or meet the budget. all: use them for any saving.",
)
OBJECTIVE = click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default=Options.objective,
    show_default=True,
    help="Size to minimize, and to which --budget applies. total: the whole arena that your firmware reserves. "
    "head: only the part that tensors share over time, for firmware that keeps the rest elsewhere.",
)
EFFORT = click.option(
    "--effort",
    type=click.Choice(EFFORTS),
    default=Options.effort,
    show_default=True,
    help="Effort of the searches for stripes and for the final plan. It counts work, not time: every machine finds "
    "the same result.",
)
INPUTS = click.option(
    "--inputs",
    type=ModelPath,
    metavar="X.npz",
    help="Your own inputs for the verification: a NumPy file with one array per input, by name.",
)


class Bar:
    """The share of a run that is done, in the order of its stages: it never falls.

    How many stages there will be is not known. Each takes a part of what is left, and what it says of itself is a share
    of that.
    """

    share = 0.0
    _stage, _start, _end = "", 0.0, 0.0

    def after(self, message: str) -> str:
        """Count a message, "stage: how far" or a stage alone; return it with the run's share in place of its own."""
        head, _, rest = message.rpartition(": ")
        stage, done = head or message, _DONE.fullmatch(rest)
        if stage != self._stage:
            self._stage, self._start = stage, self._end
            self._end += _OF_WHAT_IS_LEFT * (1 - self._end)
        within = 0.0 if done is None else int(done[1]) / 100
        self.share = max(self.share, self._start + within * (self._end - self._start))
        return f"{self.share:.0%} {message if done is None else head}"


_DONE = re.compile(r"(\d+)% done")
_OF_WHAT_IS_LEFT = 0.15


@contextmanager
def progress_line(quiet: bool | None) -> Iterator[Callable[[str], None]]:
    """Report the progress of a run on stderr: on a terminal as one live line, elsewhere as lines.

    ``quiet``: True for nothing; False for a line a stage; None for a line after five seconds of silence. A message is
    "stage: how far", or a stage alone.
    """
    bar = Bar()
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}")
        with Progress(*columns, console=Console(stderr=True), transient=True) as live:
            task = live.add_task("starting", total=1.0)

            def move(message: str) -> None:
                said = bar.after(message)
                live.update(task, description=escape(said), completed=bar.share)

            yield move
    else:
        last_stage, last_time = "", monotonic()

        def say(message: str) -> None:
            nonlocal last_stage, last_time
            stage, said = message.partition(":")[0], bar.after(message)
            is_due = monotonic() - last_time > _SILENCE if quiet is None else stage != last_stage
            if is_due:
                last_stage, last_time = stage, monotonic()
                click.echo(f"{said} ...", err=True)

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
    type=MemoryType(),
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
