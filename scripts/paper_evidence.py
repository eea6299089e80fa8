"""The papers' claims, rerun: one page for each paper in docs/evidence, and the index of all.

scripts/paper efficient_memory_management FOLDER...    Tables 1 and 2 of Pisarchyk and Lee
scripts/paper serenity FOLDER...                       SERENITY's figures and Table 2
scripts/paper index                                    docs/evidence/index.md from the pages

FOLDER is where `scripts/zoo` builds the networks. What runs here as printed is for this comparison: none of it is a
default of the tool.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
from bench_networks import named
from kept_parts import KeptParts
from paper_cells import Cell, OrderUse, cell_models, measured, order_problem
from paper_claims import index, page, paper_named
from paper_offsets import planned_networks
from paper_offsets import reruns as offset_reruns
from paper_offsets import tables as offset_tables
from paper_serenity import levels, random_orders
from paper_serenity import reruns as serenity_reruns
from paper_serenity import tables as serenity_tables

from tflite_memopt.graph.search_limit import SearchLimit
from tflite_memopt.io.reader import read_model
from tflite_memopt.ir.model import Model

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
    _write(folder, name, list(page(paper_named(name), command, offset_reruns(found), list(offset_tables(found)))))


@cli.command("serenity")
@_SOURCES
@_FOLDER
@click.option("--time-limit", default=60.0, show_default=True, help="Seconds for each cell and method.")
@click.option("--step-seconds", default=1.0, show_default=True, help="The paper's T: seconds for a search step.")
@click.option("--parts", type=click.Path(file_okay=False, path_type=Path), help="Keep what is done here, and go on.")
def serenity(
    sources: tuple[Path, ...], folder: Path, time_limit: float, step_seconds: float, parts: Path | None
) -> None:
    """Orders of the cells of five networks, among SOURCES (files, or folders of .tflite)."""
    limit, kept = SearchLimit(time_limit), KeptParts(parts)
    models = dict(cell_models(sources))
    cells = []
    for name, model in models.items():
        raw = kept.part(name.replace(" ", "_"), partial(_measured_cell, name, model, limit, step_seconds))
        cells.append(Cell(raw["name"], raw["operators"], *(_use(raw[who]) for who in ("own", "printed", "ours"))))
    files = {file.stem: file for path in sources for file in (path.glob("*.tflite") if path.is_dir() else [path])}
    table2 = levels(order_problem(read_model(files["swiftnet"].read_bytes())), limit, step_seconds)
    drawn = random_orders(order_problem(models["swiftnet A"]))
    options = f"--time-limit {time_limit:g} --step-seconds {step_seconds:g}"
    command = f"scripts/paper serenity {' '.join(map(named, sources))} {options}"
    lines = page(
        paper_named("serenity"), command, serenity_reruns(cells, drawn, table2), list(serenity_tables(cells, table2))
    )
    _write(folder, "serenity", list(lines))


def _measured_cell(name: str, model: Model, limit: SearchLimit, step_seconds: float) -> dict[str, Any]:
    return asdict(measured(name, model, limit, step_seconds))


def _use(raw: dict[str, Any]) -> OrderUse:
    return OrderUse(**raw | {"traffic": tuple(raw["traffic"])})


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
