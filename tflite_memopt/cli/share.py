"""The command ``share``."""

from __future__ import annotations

from pathlib import Path

import click

from .shared import FORCE, TARGET
from .types import ModelPath


@click.command(short_help="Write C++ files for a firmware with several models in one arena.")
@click.argument("sources", nargs=-1, required=True, metavar="A.tflite B.tflite ...", type=ModelPath)
@click.option(
    "-o", "--output", required=True, type=ModelPath, metavar="DIR", help="Folder for the files; it is made if needed."
)
@click.option(
    "--one-at-a-time",
    is_flag=True,
    help="Only a model that keeps state stays alive. The others are made anew whenever another one has run: the arena "
    "is that of the largest, and a change of models takes as long as AllocateTensors.",
)
@TARGET
@click.option("--name", default="models", show_default=True, metavar="NAME", help="C++ namespace of what they share.")
@FORCE
def share(
    sources: tuple[Path, ...], output: Path, one_at_a_time: bool, target: str | None, name: str, force: bool
) -> None:
    """Write C++ files for a firmware that runs several optimized models in one arena, in any order, one at a time.

    Each stays alive and keeps its state: tensors share bytes, TFLM's structures do not. A folder that optimize --parts
    wrote may stand for a model; its parts are made anew in each run.
    """
    from ..io.files import write_folder
    from ..program.sharing import share as shared

    found = shared(sources, one_at_a_time, target)
    files = found.files(name)
    inputs = tuple(path if path.is_file() else path / "program.json" for path in sources)
    paths = write_folder(output, files, inputs, force)
    alone = ", ".join(f"{each.name} {need:,}" for each, need in zip(found.networks, found.alone, strict=True))
    click.echo(f"RAM {found.arena:,} bytes for all in one arena on {found.target}; apart {sum(found.alone):,}: {alone}")
    if found.order:
        kept = ", ".join(found.networks[at].name for at in found.order)
        click.echo(f"alive  {kept}: {found.tail:,} bytes of structures, made in this order, which needs least")
    if anew := ", ".join(each.name for each in found.networks if not each.kept):
        click.echo(f"anew   {anew}: made when it runs, after another one or in each run if it is in parts")
    for path in paths:
        click.echo(path)
