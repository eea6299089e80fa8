"""The command that builds TFLM as WebAssembly modules and puts them where the tool finds them; see scripts/runners."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from scripts.device_lab.build import build_runner, default_cache, zig
from scripts.device_lab.builds import MODULES
from scripts.device_lab.fetch import fetched_sources
from scripts.device_lab.sources import VARIABLE, find_sources, sources_from_environment
from tflite_memopt.equivalence.module import MODULE_FOLDER
from tflite_memopt.errors import UsageError

_OF_THE_COMPILER = {
    "wasi-libc": "libc/wasi/LICENSE",
    "musl": "libc/wasi/libc-top-half/musl/COPYRIGHT",
    "cloudlibc": "libc/wasi/libc-bottom-half/cloudlibc/LICENSE",
    "libcxx": "libcxx/LICENSE.TXT",
}
"""Licenses of the libraries that Zig links, below its folder of them."""


@click.command()
@click.argument("sources", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--into", default=MODULE_FOLDER, type=click.Path(path_type=Path), help="Default: the package's own folder."
)
@click.option("--cache", type=click.Path(path_type=Path), default=default_cache, help="Folder of everything built.")
@click.option("--jobs", default=os.cpu_count() or 2, help="Compilers at a time. Default: as many as processors.")
def main(sources: Path | None, into: Path, cache: Path, jobs: int) -> None:
    """Build TFLM's modules from SOURCES, a folder or an archive; else from TFLITE_MEMOPT_TFLM; else from GitHub."""
    given = find_sources(sources, cache) if sources else sources_from_environment(cache)
    found = given or find_sources(fetched_sources(cache), cache)
    into.mkdir(parents=True, exist_ok=True)
    for name, build in MODULES.items():
        started = time.monotonic()
        built = build_runner(name, build, found, cache, jobs)
        place = into / built.name
        new = place.with_suffix(".new")
        new.write_bytes(built.read_bytes())
        new.replace(place)
        click.echo(f"{name}: {time.monotonic() - started:.0f} s", err=True)
        click.echo(f"{name} {place}")
    _keep_licenses(found.folder, into / "licenses")


def _keep_licenses(sources: Path, into: Path) -> None:
    """The licenses of all that is compiled into the modules, which whoever passes them on passes on with them."""
    compiler = zig()
    assert compiler is not None
    libraries = compiler.parent / "lib"
    found = {path.parent.name: path for path in sorted(sources.glob("*/LICENSE"))}
    found |= {name: libraries / path for name, path in _OF_THE_COMPILER.items()}
    into.mkdir(exist_ok=True)
    for name, path in found.items():
        (into / f"{name}.txt").write_bytes(path.read_bytes())


if __name__ == "__main__":
    try:
        main()
    except UsageError as error:
        click.echo(f"Error: {error}; {VARIABLE} or the argument can name sources", err=True)
        sys.exit(2)
