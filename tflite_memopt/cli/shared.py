"""What several commands share: options, progress on stderr, results on stdout."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ..kernels.profiles import PROFILES
from ..kernels.targets import TARGETS

if TYPE_CHECKING:
    from rich.console import RenderableType

KERNELS = click.option(
    "--kernels",
    type=click.Choice(list(PROFILES)),
    default="portable",
    show_default=True,
    help="Kernels that the firmware links, for experts; --target chooses them.",
)
TARGET = click.option(
    "--target",
    type=click.Choice(list(TARGETS)),
    help="Core or chip of the firmware; 'targets' lists them. [default: any]",
)
TIME_LIMIT = click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Limit of each search.",
)
RUNNER = click.option(
    "--runner",
    metavar="COMMAND",
    help="Your own kernels, a board or an emulator, where equality is proved as well; see docs/device_runner.md.",
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
SEED = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of searches and inputs.")
SAMPLES = click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Least inputs per runtime in the proof.",
)


def progress_line(quiet: bool) -> Callable[[str], None]:
    def say(message: str) -> None:
        if not quiet:
            click.echo(f"{message} ...", err=True)

    return say


def show(renderable: RenderableType) -> None:
    from rich.console import Console

    console = Console()
    # A pipe has no width: the tables' own is used there, so that nothing is cut off.
    Console(width=None if console.is_terminal else 140).print(renderable)
