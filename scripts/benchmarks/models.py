"""What optimize answers for models and targets: docs/results/models.csv, people.csv, strangers.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.memory.work import slowest
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import optimize

from .figures import Row, keep

TARGETS = ("", "cortex-m4", "cortex-m55", "esp32s3", "pico")
BEFORE, AFTER, SLOWER = "RAM before, bytes", "RAM after, bytes", "run time added, %"
FILE_BEFORE, FILE_AFTER = "file before, bytes", "file after, bytes"
READ_BEFORE, READ_AFTER = "weights read before, bytes", "weights read after, bytes"
REFUSED = "refused"


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--target", "targets", multiple=True, default=TARGETS, help="Repeatable; an empty one: any kernels.")
@click.option("--table", default="models", show_default=True, help="The table of figures to write.")
def models(sources: tuple[Path, ...], targets: tuple[str, ...], table: str) -> None:
    """RAM, run time, bytes of the file, and bytes of weights read, before and after, with the default options.

    SOURCES are files, or folders of .tflite. Unverified: continuous integration proves and verifies the same models.
    """
    names = "".join(f" --target '{target}'" for target in targets if targets != TARGETS)
    into = "" if table == "models" else f" --table {table}"
    rows = (
        Row(path.stem, target, "--no-verify", answer(path, Options(target=target or None, verify=False)))
        for path in files_of(sources)
        for target in targets
    )
    keep(table, f"scripts/bench models FOLDER{names}{into}", rows)


def files_of(sources: tuple[Path, ...]) -> Iterator[Path]:
    """Files, and those of folders by name."""
    for source in sources:
        yield from sorted(source.rglob("*.tflite")) if source.is_dir() else [source]


def answer(path: Path, options: Options) -> Mapping[str, object]:
    """The figures of a run, or why it is refused."""
    try:
        report = optimize(path, options).report
    except MemoptError as error:
        return {REFUSED: error}
    before, after = report.before, report.after
    return {
        BEFORE: before.required_for_target,
        AFTER: report.answer.reserve,
        SLOWER: f"{100 * slowest(before.instructions, after.instructions):.1f}",
        FILE_BEFORE: report.file_bytes["before"],
        FILE_AFTER: report.file_bytes["after"],
        READ_BEFORE: before.weights_read,
        READ_AFTER: after.weights_read,
    }
