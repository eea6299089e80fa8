"""The command ``codegen``."""

from __future__ import annotations

from pathlib import Path

import click

from ..firmware import PLANNERS, Planner
from .shared import FORCE, TARGET
from .types import Memory, ModelPath


@click.command(short_help="Write C++ files for a firmware that runs a model.")
@click.argument("source", metavar="OUT.tflite", type=ModelPath)
@click.option(
    "-o", "--output", required=True, type=ModelPath, metavar="DIR", help="Folder for the files; it is made if needed."
)
@TARGET
@click.option(
    "--name",
    default="model",
    show_default=True,
    metavar="NAME",
    help="C++ namespace of everything in the files, so that several models go into one firmware.",
)
@click.option(
    "--planner",
    type=click.Choice(PLANNERS),
    default=PLANNERS[0],
    show_default=True,
    help="metadata: TFLM's planner reads the plan in the file. table: the plan is a C++ table that takes the planner's "
    "place; AllocateTensors then needs no memory for planning, and refuses another model or other kernels.",
)
@click.option(
    "--memory",
    "memories",
    type=Memory(),
    multiple=True,
    metavar="NAME=SIZE",
    help="A memory of the chip, such as dtcm=64K, the fastest first. Repeat for more: a table then spreads the tensors "
    "over them, so that all fits and few bytes move through the slower ones.",
)
@click.option(
    "--tail",
    metavar="NAME",
    help="The --memory in which TFLM's own structures lie, and so the arena. [default: the last one]",
)
@FORCE
def codegen(
    source: Path,
    output: Path,
    target: str | None,
    name: str,
    planner: Planner,
    memories: tuple[tuple[str, int], ...],
    tail: str | None,
    force: bool,
) -> None:
    """Write C++ files for a firmware that runs OUT.tflite: the model, its arena, its operators, and a main program.

    The arena's size is for the target that the model was optimized for, or for --target. A model that TFLM cannot run
    is refused without --force.
    """
    from ..firmware.generate import generate
    from ..io.files import read_file, write_folder
    from ..memory.reading import naming

    with naming(source.name):
        files = generate(read_file(source), target, name, source.name, force, planner, dict(memories), tail)
    for path in write_folder(output, files, (source,), force):
        click.echo(path)
