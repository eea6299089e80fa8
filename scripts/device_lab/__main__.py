"""The command; see ``scripts/device --help``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import click

from scripts.device_lab.build import build_runner, default_cache, missing_tools
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.firmware import compiled_program
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


@cli.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--build", "name", type=click.Choice(tuple(BUILDS)), default="host-reference", show_default=True)
@click.option("--ram", type=int, metavar="BYTES", help="RAM of an emulated core, for data, heap and stack.")
@click.option("--main", default="main.cc", show_default=True, help="The program; main_two_arenas.cc is the other one.")
@click.option(
    "--tflm", type=click.Path(exists=True, path_type=Path), help=f"Folder or archive of sources; else {VARIABLE}."
)
@click.option("--cache", type=click.Path(path_type=Path), default=default_cache, help="Folder of everything built.")
def firmware(folder: Path, name: str, ram: int | None, main: str, tflm: Path | None, cache: Path) -> None:
    """Compile and run what `tflite-memopt codegen` wrote into FOLDER."""
    sources = find_sources(tflm, cache) if tflm else sources_from_environment(cache)
    if sources is None:
        raise UsageError(f"say where TFLM's sources are: --tflm, or {VARIABLE}")
    start = compiled_program(name, BUILDS[name], sources, cache, folder.resolve(), main, ram=ram)
    sys.exit(subprocess.run(start, check=False, stdin=subprocess.DEVNULL).returncode)


if __name__ == "__main__":
    try:
        cli()
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
