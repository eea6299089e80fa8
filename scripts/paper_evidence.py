"""The papers' claims, rerun: one page for each paper in docs/evidence, and the index of all.

scripts/paper efficient_memory_management FOLDER...    Tables 1 and 2 of Pisarchyk and Lee
scripts/paper index                                    docs/evidence/index.md from the pages

FOLDER is where `scripts/zoo` builds the networks. What runs here as printed is for this comparison: none of it is a
default of the tool.
"""

from __future__ import annotations

from pathlib import Path

import click
from bench_networks import named
from paper_claims import index, page, paper_named
from paper_offsets import planned_networks, reruns, tables

_SOURCES = click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
_FOLDER = click.option(
    "--folder", default="docs/evidence", show_default=True, type=click.Path(file_okay=False, path_type=Path)
)


@click.group()
def cli() -> None:
    """Reruns the claims of the papers behind tflite_memopt."""


@cli.command("efficient_memory_management")
@_SOURCES
@_FOLDER
def efficient_memory_management(sources: tuple[Path, ...], folder: Path) -> None:
    """Shared objects and offsets on the paper's six networks, among SOURCES (files, or folders of .tflite)."""
    name = "efficient_memory_management"
    found = planned_networks(sources)
    command = f"scripts/paper {name} {' '.join(map(named, sources))}"
    _write(folder, name, list(page(paper_named(name), command, reruns(found), list(tables(found)))))


@cli.command("index")
@_FOLDER
def index_command(folder: Path) -> None:
    """Write the index of the pages that are there."""
    (folder / "index.md").write_text("\n".join(index(folder)) + "\n")


def _write(folder: Path, name: str, lines: list[str]) -> None:
    (folder / f"{name}.md").write_text("\n".join(lines).rstrip() + "\n")
    (folder / "index.md").write_text("\n".join(index(folder)) + "\n")


if __name__ == "__main__":
    cli()
