"""The command; see ``scripts/device --help``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from scripts.device_lab.build import build_runner, default_cache, missing_tools
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.sources import VARIABLE, find_sources, sources_from_environment
from tflite_memopt.errors import UsageError


@click.group()
def cli() -> None:
    """Runners of TensorFlow Lite Micro, on this machine and on Cortex-M under QEMU."""


@cli.command(name="list")
def show() -> None:
    """The runners that can be built, and what is missing for them here."""
    for name, build in BUILDS.items():
        where = f"QEMU {build.machine}" if build.machine else "this machine"
        click.echo(f"{name:22} {where:18} profile {build.profile:14} {missing_tools(build) or 'can be built'}")


@cli.command()
@click.argument("names", nargs=-1, type=click.Choice(tuple(BUILDS)))
@click.option(
    "--tflm", type=click.Path(exists=True, path_type=Path), help=f"Folder or archive of sources; else {VARIABLE}."
)
@click.option("--cache", type=click.Path(path_type=Path), default=default_cache, help="Folder of everything built.")
@click.option("--jobs", default=os.cpu_count() or 2, help="Compilers at a time. Default: as many as processors.")
def build(names: tuple[str, ...], tflm: Path | None, cache: Path, jobs: int) -> None:
    """Build NAMES (all that can be when none is given) and print the path of each runner."""
    sources = find_sources(tflm, cache) if tflm else sources_from_environment(cache)
    if sources is None:
        raise UsageError(f"say where TFLM's sources are: --tflm, or {VARIABLE}")
    wanted = names or [n for n, b in BUILDS.items() if not missing_tools(b) and not sources.missing(b.library)]
    for name in wanted:
        started = time.monotonic()
        runner = build_runner(name, BUILDS[name], sources, cache, jobs)
        click.echo(f"{name}: {time.monotonic() - started:.0f} s", err=True)
        click.echo(f"{name} {runner}")


if __name__ == "__main__":
    try:
        cli()
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
