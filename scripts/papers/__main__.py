"""The papers' claims, rerun: one page for each paper, and scripts/papers/README.md of all.

scripts/paper efficient_memory_management FOLDER...    Tables 1 and 2 of Pisarchyk and Lee
scripts/paper serenity FOLDER...                       SERENITY's figures and Table 2
scripts/paper iterative_graph_optimization FOLDER...   Tables II to VI and Figure 9 of Zhong et al.
scripts/paper hmcos FOLDER... --source DIR             HMCOS's authors' code, from a checkout of wzh99/HMCOS
scripts/paper cascading_rfc FOLDER...                  Arm's RFC: its example, MobileNet and VGG-16
scripts/paper index                                    scripts/papers/README.md from the pages

FOLDER is where `scripts/zoo` builds the networks. What runs here as printed is for this comparison: none of it is a
default of the tool.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from scripts.benchmarks.kept_parts import KeptParts
from scripts.benchmarks.networks import named
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.ir.copying import drop_dead_tensors
from tflite_memopt.model.ir.model import Model
from tflite_memopt.solvers.graph.limits import SearchLimit

from .as_printed.serenity import StepLimit
from .cascading import measured as striped
from .cascading import reruns as cascading_reruns
from .cascading import tables as cascading_tables
from .cells import Cell, cell_models, measured, order_problem, over_time, rewritten
from .claims import Rerun, Spent, index, page, paper_named
from .graphs import files_in
from .hmcos import measured as hmcos_measured
from .hmcos import reruns as hmcos_reruns
from .hmcos import tables as hmcos_tables
from .ilp import Stages, stages
from .ilp import measured as ilp_measured
from .ilp_page import reruns as ilp_reruns
from .ilp_page import tables as ilp_tables
from .offsets import planned_networks
from .offsets import reruns as offset_reruns
from .offsets import tables as offset_tables
from .serenity import LEVELS, REWRITTEN, levels, random_orders
from .serenity import reruns as serenity_reruns
from .serenity import tables as serenity_tables
from .serenity_why import FORMS, experiments

_SOURCES = click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
_FOLDER = click.option(
    "--folder", default="build/evidence", show_default=True, type=click.Path(file_okay=False, path_type=Path)
)
_PARTS = click.option(
    "--parts", type=click.Path(file_okay=False, path_type=Path), help="Keep what is done here, and go on."
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
    start = Spent.now()
    found = planned_networks(sources)
    reruns, tables = list(offset_reruns(found)), list(offset_tables(found))
    _write(folder, name, " ".join(map(named, sources)), reruns, tables, Spent.now().since(start))


@cli.command("serenity")
@_SOURCES
@_FOLDER
@_PARTS
@click.option("--time-limit", default=60.0, show_default=True, help="Seconds for each cell and method.")
@click.option("--step-signatures", default=10_000, show_default=True, help="The paper's T, counted in signatures.")
@click.option(
    "--step-seconds", default=math.inf, help="T as printed, too; machines may then disagree.  [default: none]"
)
def serenity(
    sources: tuple[Path, ...],
    folder: Path,
    parts: Path | None,
    time_limit: float,
    step_signatures: int,
    step_seconds: float,
) -> None:
    """Orders of the cells of five networks, among SOURCES (files, or folders of .tflite)."""
    start = Spent.now()
    limit, kept, step = SearchLimit(time_limit), KeptParts(parts), StepLimit(step_seconds, step_signatures)
    models = dict(cell_models(sources))
    cells = [
        Cell.from_json(kept.part(name.replace(" ", "_"), partial(_measured_cell, name, model, limit, step)))
        for name, model in models.items()
    ]
    whole = read_model(files_in(sources)["swiftnet"].read_bytes())
    drop_dead_tensors(whole)
    table2 = levels(order_problem(whole), limit, step, LEVELS)
    table2 |= levels(order_problem(rewritten(whole)), limit, step, REWRITTEN)
    drawn = random_orders(order_problem(models["swiftnet A"]))
    why = experiments([order_problem(model) for name, model in models.items() if "randwire" in name], kept)
    options = f"--time-limit {time_limit:g} --step-signatures {step_signatures}"
    options += f" --step-seconds {step_seconds:g}" if step_seconds < math.inf else ""
    reruns = serenity_reruns(cells, drawn, table2, why)
    tables = list(serenity_tables(cells, over_time(models["swiftnet A"], step), table2, why))
    words = f"{' '.join(map(named, sources))} {options}"
    _write(folder, "serenity", words, reruns, tables, _spent_since(start, parts))


def _measured_cell(name: str, model: Model, limit: SearchLimit, step: StepLimit) -> dict[str, Any]:
    return asdict(measured(name, model, limit, step))


@cli.command("iterative_graph_optimization")
@_SOURCES
@_FOLDER
@_PARTS
@click.option("--work", default=0.1, show_default=True, help="What each integer program may spend; 1 is some 10 s.")
def iterative_graph_optimization(sources: tuple[Path, ...], folder: Path, parts: Path | None, work: float) -> None:
    """Tables II to VI and Figure 9 on the paper's nine networks, among SOURCES (files, or folders of .tflite)."""
    name, start = "iterative_graph_optimization", Spent.now()
    kept = KeptParts(parts)
    found = ilp_measured(sources, SearchLimit(effort=work), kept)
    forms = [Stages(**kept.part(f"stages_{form}", partial(_stages, form))) for form in FORMS]
    words = f"{' '.join(map(named, sources))} --work {work:g}"
    _write(folder, name, words, ilp_reruns(found), list(ilp_tables(found, forms)), _spent_since(start, parts))


def _stages(form: str) -> dict[str, Any]:
    return asdict(stages(form))


@cli.command("hmcos")
@_SOURCES
@_FOLDER
@_PARTS
@click.option(
    "--source", required=True, type=click.Path(exists=True, path_type=Path), help="A checkout of wzh99/HMCOS."
)
@click.option("--build", default="build/hmcos", show_default=True, type=click.Path(path_type=Path), help="Made here.")
def hmcos(sources: tuple[Path, ...], folder: Path, parts: Path | None, source: Path, build: Path) -> None:
    """The authors' code on Table II's nine networks, among SOURCES, beside ours. Needs cmake and ONNX's headers."""
    start = Spent.now()
    found = hmcos_measured(sources, source, build, KeptParts(parts))
    words = f"{' '.join(map(named, sources))} --source HMCOS"
    _write(folder, "hmcos", words, list(hmcos_reruns(found)), list(hmcos_tables(found)), _spent_since(start, parts))


@cli.command("cascading_rfc")
@_SOURCES
@_FOLDER
@_PARTS
def cascading_rfc(sources: tuple[Path, ...], folder: Path, parts: Path | None) -> None:
    """The example, MobileNet and VGG-16, among SOURCES (files, or folders of .tflite)."""
    start = Spent.now()
    found = striped(sources, KeptParts(parts))
    reruns, tables = list(cascading_reruns(found)), list(cascading_tables(found))
    _write(folder, "cascading_rfc", " ".join(map(named, sources)), reruns, tables, _spent_since(start, parts))


@cli.command("index")
@_FOLDER
@click.option("-o", "--output", default="scripts/papers/README.md", show_default=True, type=click.Path(path_type=Path))
def index_command(folder: Path, output: Path) -> None:
    """Write the index of the pages that are there."""
    output.write_text("\n".join(index(folder)) + "\n")


def _spent_since(start: Spent, parts: Path | None) -> str:
    """Nothing where parts of the work may have been done before."""
    return Spent.now().since(start) if parts is None else ""


def _write(folder: Path, name: str, words: str, reruns: Sequence[Rerun], tables: Sequence[str], spent: str) -> None:
    """The page; ``words``: those of the command after ``scripts/paper NAME``."""
    lines = page(paper_named(name), f"scripts/paper {name} {words}", reruns, tables, spent)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    cli()
