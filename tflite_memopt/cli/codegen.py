"""The command ``codegen``."""

from __future__ import annotations

from pathlib import Path

import click

from ..firmware import PLANNERS, Planner
from .shared import FORCE, MEMORY, TARGET, memories_of
from .types import GivenMemories, ModelPath


@click.command(short_help="Write C++ files for a firmware that runs a model.")
@click.argument("source", metavar="OUT.tflite", type=ModelPath, required=False)
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
    help="metadata: TFLM's planner reads the plan in the file. table: the plan is a C++ table that takes the planner's "
    "place; AllocateTensors then needs no memory for planning, and refuses another model or other kernels. "
    "[default: table where the target is known and its kernels were measured, else metadata]",
)
@MEMORY
@click.option(
    "--tail",
    metavar="NAME",
    help="The --memory in which TFLM's own structures lie, and so the arena. [default: the last one]",
)
@click.option(
    "--external",
    multiple=True,
    metavar="input|output|NAME",
    help="A tensor that lies in a buffer of the firmware's own, and not in the arena; nothing else uses that buffer.",
)
@click.option(
    "--tie",
    "ties",
    multiple=True,
    metavar="OUT:IN",
    help="An output that is written in the place of an input: what one run gives, the next one takes, without a copy.",
)
@click.option(
    "--temporaries-apart",
    is_flag=True,
    help="What TFLM needs only while AllocateTensors runs lies in a buffer that your firmware may use afterwards, and "
    "not in the arena.",
)
@click.option(
    "--original",
    type=ModelPath,
    metavar="MODEL",
    help="The model as it came: the test in main.cc expects its outputs. [default: those of OUT.tflite itself]",
)
@click.option(
    "--runner",
    is_flag=True,
    help="Write runner.cc alone, which makes a --runner of your own build of TFLM; no OUT.tflite.",
)
@FORCE
def codegen(
    source: Path | None,
    output: Path,
    target: str | None,
    name: str,
    planner: Planner | None,
    memories: tuple[GivenMemories, ...],
    tail: str | None,
    external: tuple[str, ...],
    ties: tuple[str, ...],
    temporaries_apart: bool,
    original: Path | None,
    runner: bool,
    force: bool,
) -> None:
    """Write C++ files for a firmware that runs OUT.tflite: the model, its arena, its operators, and a main program.

    The main program is a test: it draws inputs, runs the model, compares the outputs with those that TFLM gave here,
    and prints PASS or FAIL.

    The arena's size is for the target that the model was optimized for, or for --target. A model that TFLM cannot run
    is refused without --force. OUT.tflite may be a folder that optimize --parts wrote: then the class Program runs it.
    """
    from ..firmware.generate import generate, runner_source, tie_positions
    from ..firmware.plan_table import MemoryRequest
    from ..firmware.self_test import expected_outputs
    from ..io.files import read_file, write_folder
    from ..memory.reading import naming, read_planned

    if runner == (source is not None):
        raise click.UsageError("name OUT.tflite, or write --runner without it")
    if source is None:
        for path in write_folder(output, {"runner.cc": runner_source()}, (), force):
            click.echo(path)
        return
    sizes, prices = memories_of(memories)
    request = MemoryRequest(sizes, tail, external, ties, prices, temporaries_apart)
    if source.is_dir():
        if not request.is_empty or temporaries_apart:
            raise click.UsageError("options about memories and buffers are for one model, not for a program")
        if original is not None:
            raise click.UsageError("--original is for one model, not for a program")
        _codegen_program(source, output, target, name, planner, force)
        return
    with naming(source.name):
        data = read_file(source)
        generate(data, target, name, source.name, force, planner, request)  # refuse a wrong request before TFLM runs
        known = None if original is None else (original.name, read_file(original))
        expected = expected_outputs(data, tie_positions(read_planned(data), ties), known)
        files = generate(data, target, name, source.name, force, planner, request, expected)
    for path in write_folder(output, files, (source,), force):
        click.echo(path)


def _codegen_program(
    folder: Path, output: Path, target: str | None, name: str, planner: Planner | None, force: bool
) -> None:
    from ..io.files import write_folder
    from ..program.files import read_program
    from ..program.firmware import generate_program
    from ..program.verifying import expected_of

    program, parts = read_program(folder)
    generate_program(program, parts, target, name, planner, force)  # refuse a wrong request before TFLM runs
    files = generate_program(program, parts, target, name, planner, force, expected_of(program, parts))
    for path in write_folder(output, files, tuple(folder / part.file for part in program.parts), force):
        click.echo(path)
