"""The command ``analyze``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .exit_codes import code_of
from .flags import flag_of, flags_of
from .reports import report_option, reports_of
from .shared import FORCE, JSON, MEMORY, QUIET, TFLM_OF_FILE, check_files, file_option, memories_of, show
from .types import GivenMemories, ModelPath


@click.command(short_help="Show the RAM that a model needs now, and what determines it.")
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@flags_of("analyze")
@TFLM_OF_FILE
@flag_of(
    "budget",
    help="Available RAM, for example 64K. If the model exceeds it, also says how many bytes it needs at least as "
    "one file, in parts, and fed row by row.",
)
@MEMORY
@report_option(".json", ".html", ".svg")
@JSON
@file_option(
    "--node-data",
    "node_folder",
    metavar="DIR",
    help="Write node data for Google's Model Explorer: bytes, computation, and time of the operators.",
)
@FORCE
@QUIET
def analyze(
    source: Path,
    target: str | None,
    kernels: str | None,
    tflm: str | None,
    budget: int | None,
    memories: tuple[GivenMemories, ...],
    reports: tuple[Path, ...],
    as_json: bool,
    node_folder: Path | None,
    force: bool,
    quiet: bool | None,
) -> None:
    """Show how much RAM IN.tflite needs as it is, which operators need the most, and what limits it."""
    from ..api import analyze as run
    from ..memory.file import read_planned
    from ..model.io.files import read_file, write_files, write_folder
    from ..options import Options
    from ..report.document import text_of
    from ..report.documents import analysis_document
    from ..report.model import to_json
    from ..report.node_data import node_data
    from ..run.parts.fronts import said_of_feeding
    from ..run.parts.ways import said_of_ways

    check_files(reports, (source,), force)
    sizes, prices = memories_of(memories)
    analysis = run(source, kernels, target, tflm, budget, sizes or None, prices)
    document = analysis_document(analysis)
    files = reports_of(reports, analysis, document)
    if node_folder is None:
        write_files(files)
    else:
        write_folder(node_folder, node_data(analysis.arena), (source,), force, files)
    if as_json:
        click.echo(to_json(analysis), nl=False)
    elif quiet:
        click.echo(analysis.summary.headline)
    else:
        show(text_of(document))
        model, options = read_planned(read_file(source)), Options(target=target, kernels=kernels, budget=budget)
        lines = [said_of_feeding(model, options)] if budget is None else said_of_ways(model, analysis, options)
        for line in filter(None, lines):
            click.echo(line)
    sys.exit(code_of(analysis.answer))
