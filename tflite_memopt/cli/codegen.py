"""The command ``codegen``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import ErrorKind, UsageError
from ..firmware import PLANNERS, Planner
from .flags import flags_of
from .shared import FORCE, MEMORY, file_option, memories_of
from .types import GivenMemories, ModelPath

if TYPE_CHECKING:
    from ..firmware.description import OneModel


@click.command(short_help="Write C++ files for a firmware that runs a model.")
@click.argument("sources", nargs=-1, metavar="OUT.tflite...", type=ModelPath)
@file_option("-o", "--output", required=True, metavar="DIR", help="Folder for the files; created if it does not exist.")
@flags_of("codegen")
@click.option(
    "--name",
    metavar="NAME",
    help="C++ namespace of the generated code, or of the code that several models share. [default: model; for "
    "several models: models]",
)
@click.option(
    "--one-at-a-time",
    is_flag=True,
    help="With several models, keep only stateful ones alive and re-create the others after another one has run. "
    "The arena is that of the largest model; switching takes as long as AllocateTensors.",
)
@click.option(
    "--planner",
    type=click.Choice(PLANNERS),
    help="metadata: TFLM's planner reads the plan in the file. table: a C++ table replaces the planner; "
    "AllocateTensors then needs no memory for planning, and refuses other models and kernels. [default: table if "
    "the target is known and its kernels were measured, otherwise metadata]",
)
@MEMORY
@click.option(
    "--tail",
    metavar="NAME",
    help="The --memory that holds the arena with TFLM's own structures. [default: the last one]",
)
@click.option(
    "--external",
    multiple=True,
    metavar="input|output|NAME",
    help="Put this tensor into a buffer of the firmware that nothing else uses, outside the arena.",
)
@click.option(
    "--tie",
    "ties",
    multiple=True,
    metavar="OUT:IN",
    help="Write this output in place of this input, so that the next run takes it without a copy.",
)
@click.option(
    "--temporaries-apart",
    is_flag=True,
    help="Put memory that TFLM needs only during AllocateTensors into a buffer outside the arena, which your "
    "firmware may reuse afterwards.",
)
@file_option(
    "--original",
    metavar="MODEL",
    help="The original model, whose outputs the test in main.cc expects. [default: OUT.tflite]",
)
@file_option(
    "--esphome",
    "manifest",
    metavar="MANIFEST.json",
    help="Also write this manifest of micro_wake_word for OUT.tflite, with the arena that the model needs in ESPHome.",
)
@click.option(
    "--write-runner",
    is_flag=True,
    help="Write only runner.cc, the source of a program for verify --runner with your own build of TFLM.",
)
@FORCE
def codegen(
    sources: tuple[Path, ...],
    output: Path,
    target: str | None,
    name: str | None,
    one_at_a_time: bool,
    planner: Planner | None,
    memories: tuple[GivenMemories, ...],
    tail: str | None,
    external: tuple[str, ...],
    ties: tuple[str, ...],
    temporaries_apart: bool,
    original: Path | None,
    manifest: Path | None,
    write_runner: bool,
    force: bool,
) -> None:
    """Write C++ files for a firmware that runs OUT.tflite: the model, its arena, its operators, and a main program.

    The main program is a test: it draws inputs, runs the model, compares the outputs with those that TFLM gave here,
    and prints PASS or FAIL.

    The arena's size is for the target that the model was optimized for, or for --target. A model that TFLM cannot run,
    or computes otherwise, is refused without --force. OUT.tflite may be a folder that optimize --parts wrote: then the
    class Program runs it.

    Several models go into one arena, in the order given, and run in any order, one at a time. Each stays alive and
    keeps its state: tensors share bytes, TFLM's structures do not. The parts of a folder are re-created in each run.
    """
    from ..firmware.describe import describe
    from ..firmware.esphome import manifest_of
    from ..firmware.files import files_of_model, runner_source
    from ..firmware.plan_table import MemoryRequest
    from ..firmware.self_test import expected_outputs
    from ..memory.file import naming
    from ..memory.problems import labeled_ties, tie_positions
    from ..model.io.files import read_file

    if write_runner == bool(sources):
        raise click.UsageError("name OUT.tflite, or give --write-runner without it")
    if write_runner:
        _write(output, {"runner.cc": runner_source()}, (), force)
        return
    sizes, prices = memories_of(memories)
    request = MemoryRequest(sizes, tail, external, ties, prices, temporaries_apart)
    is_plain = request.is_empty and not temporaries_apart and original is None and manifest is None
    if len(sources) > 1:
        if not is_plain or planner is not None:
            raise click.UsageError(
                "--planner, --original, --esphome, memories and buffers are for one model, not for several"
            )
        _codegen_shared(sources, output, target, name or "models", one_at_a_time, force)
        return
    if one_at_a_time:
        raise click.UsageError("--one-at-a-time is for several models: name them all")
    (source,), name = sources, name or "model"
    if source.is_dir():
        if not is_plain or planner == "metadata":
            raise click.UsageError("a program has its plans as tables in one memory: omit these options")
        _codegen_program(source, output, target, name, force)
        return
    with naming(source.name):
        if manifest is not None and manifest.name == source.name:
            raise UsageError(f"'{source.name}' names both the model and the manifest: rename one", ErrorKind.NAME)
        data = read_file(source)
        one = describe(data, target, name, source.name, force, planner, request)  # refuses a wrong one before TFLM runs
        known = None if original is None else (original.name, read_file(original))
        more: dict[str, bytes] = {}
        if manifest is not None:
            more[f"esphome/{manifest.name}"] = manifest_of(one, read_file(manifest), manifest.name, source.name)
            more[f"esphome/{source.name}"] = data
        pairs = tie_positions(one.model, request.ties or labeled_ties(one.model))
        files = files_of_model(one, expected_outputs(data, pairs, known)) | more
    read = [path for path in (source, original, manifest) if path is not None]
    _write(output, files, read, force, _told(one, files))
    _say_of_former(output, files)


def _write(
    output: Path, files: Mapping[str, bytes], read: Sequence[Path], force: bool, told: Iterable[str] = ()
) -> None:
    """Write files into a folder; then print what is told of them, and their paths."""
    from ..model.io.files import write_folder

    for line in (*told, *map(str, write_folder(output, files, read, force))):
        click.echo(line)


def _say_of_former(output: Path, files: Collection[str]) -> None:
    """Print the snippets that an earlier run left and this run did not write; they may be for another target."""
    from ..firmware.files import SNIPPETS

    former = [str(output / path) for path in sorted(SNIPPETS.difference(files)) if (output / path).is_file()]
    if former:
        click.echo(f"not of this run, perhaps of another target: {', '.join(former)}", err=True)


def _told(one: OneModel, files: Collection[str]) -> Iterator[str]:
    """Yield the bytes of each array, where it is placed, and what to do with the files."""
    size = next(iter(one.sizes.by_library.values()))
    how = "" if one.table is None else " with the planner of planner.h"
    yield f"RAM {size.required:,} bytes: {one.name}::kArenaBytes{how}, for {one.whom}"
    for memory in () if one.table is None or len(one.table.names) < 2 else one.table.memories:
        where = "any buffer of yours" if memory.is_external else f"{memory.macro} sets its section"
        yield f"    {memory.label}: {size.required if memory.is_arena else memory.bytes:,} bytes, {where}"
    if one.build.name.startswith("arduino") and "snippets/arduino.ino" not in files:
        yield "no sketch: Arduino's library lacks these kernels; optimize with --target arduino-nano-33-ble"
    yield 'next: main.cc and model_data.cc are the test; your firmware has #include "setup.h" and calls Start()'


def _files_in(folder: Path, parts: Iterable[str]) -> tuple[Path, ...]:
    from ..run.parts.files import MANIFEST

    return tuple(folder / name for name in (MANIFEST, *parts))


def _codegen_program(folder: Path, output: Path, target: str | None, name: str, force: bool) -> None:
    from ..firmware.files import files_of_networks
    from ..run.parts.files import read_program
    from ..run.parts.firmware import describe_program
    from ..run.parts.verifying import expected_of

    program, parts = read_program(folder)
    firmware = describe_program(program, parts, target, name, force)  # refuses a wrong request before TFLM runs
    files = files_of_networks(firmware, [expected_of(parts, program.feed)])
    read = _files_in(folder, (part.file for part in program.parts))
    told = (
        f"RAM {firmware.arena:,} bytes: the arena of the class {name}::Program, for {firmware.whom}",
        'next: main.cc and model_data.cc are the test; your firmware has #include "program.h" and calls Invoke()',
    )
    _write(output, files, read, force, told)


def _codegen_shared(
    sources: tuple[Path, ...], output: Path, target: str | None, name: str, one_at_a_time: bool, force: bool
) -> None:
    from ..firmware.files import files_of_networks
    from ..run.parts.sharing import share
    from ..run.parts.verifying import expected_of

    joint = share(sources, one_at_a_time, target)
    firmware = joint.firmware(name)
    expected = [expected_of(network.parts) for network in joint.networks]
    read = [
        file
        for path, network in zip(sources, joint.networks, strict=True)
        for file in (_files_in(path, network.files) if path.is_dir() else (path,))
    ]
    alone = ", ".join(f"{network.name} {need:,}" for network, need in zip(joint.networks, joint.alone, strict=True))
    told = [f"RAM {joint.arena:,} bytes for all in one arena on {joint.target}; apart {sum(joint.alone):,}: {alone}"]
    if kept := ", ".join(network.name for network in joint.networks if network.kept):
        told.append(f"alive  {kept}: {joint.tail:,} bytes of structures, created in this order")
    if anew := ", ".join(network.name for network in joint.networks if not network.kept):
        told.append(f"anew   {anew}: created when it runs, after another one or in each run if it is in parts")
    _write(output, files_of_networks(firmware, expected), read, force, told)
