"""What optimize answers for models and targets: docs/results/models.csv."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from tflite_memopt.memory.work import slowest
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize

from .figures import Figure, add, version
from .strangers import files_of

TARGETS = ("", "cortex-m4", "cortex-m55", "esp32s3", "pico")
BEFORE, AFTER, SLOWER = "RAM before, bytes", "RAM after, bytes", "run time added, %"
FILE_BEFORE, FILE_AFTER = "file before, bytes", "file after, bytes"
READ_BEFORE, READ_AFTER = "weights read before, bytes", "weights read after, bytes"


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--target", "targets", multiple=True, default=TARGETS, help="Repeatable; an empty one: any kernels.")
def models(sources: tuple[Path, ...], targets: tuple[str, ...]) -> None:
    """RAM, run time, bytes of the file, and bytes of weights read, before and after, with the default options.

    Unverified: the continuous integration proves and verifies the same models.
    """
    for path in files_of(sources):
        for target in targets:
            found = list(_figures(path, target))
            add("models", found)
            click.echo(f"{path.stem} {target}: {', '.join(f'{each.name} {each.value}' for each in found)}")


def _figures(path: Path, target: str) -> Iterator[Figure]:
    report = optimize(path, Options(target=target or None, verify=False)).report
    before, after = report.before, report.after
    values = {
        BEFORE: before.required_for_target,
        AFTER: report.answer.reserve,
        SLOWER: f"{100 * slowest(before.instructions, after.instructions):.1f}",
        FILE_BEFORE: report.file_bytes["before"],
        FILE_AFTER: report.file_bytes["after"],
        READ_BEFORE: before.weights_read,
        READ_AFTER: after.weights_read,
    }
    present = version()
    for name, value in values.items():
        yield Figure(path.stem, target, "--no-verify", name, str(value), present)
