"""What optimize answers to files that strangers made: docs/results.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.ir.change import DEAD_CHANNELS
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.report.model import Report

from .figures import Echo
from .markdown_table import row, table


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--target", help="The core or chip to plan for.")
@click.option("--no-verify", "verify", is_flag=True, default=True, flag_value=False, help="Do not run the models.")
@click.option("--limit", default=0, help="Leave out files of more bytes than this; 0: none.")
def strangers(sources: tuple[Path, ...], target: str | None, verify: bool, limit: int) -> None:
    """The answer to each .tflite of SOURCES, files or folders: bytes of RAM and flash, run time, or the refusal."""
    options = Options(target=target, verify=verify)
    echo = Echo("strangers", "" if target is None else f"--target {target}")
    for line in table("file | RAM | file's bytes | run time | equal | dead channels | mended"):
        echo(line)
    for path in files_of(sources):
        if not limit or path.stat().st_size <= limit:
            echo(row(path.stem, *_answer(path, options)))


def files_of(sources: tuple[Path, ...]) -> Iterator[Path]:
    for source in sources:
        yield from sorted(source.rglob("*.tflite")) if source.is_dir() else [source]


def _answer(path: Path, options: Options) -> Iterator[str]:
    try:
        report = optimize(path, options).report
    except MemoptError as error:
        yield f"refused: {error}".replace("\n", " ")
        return
    before, after = report.before, report.after
    yield f"{before.required_for_target:,} -> {after.required_for_target:,}"
    yield f"{report.file_bytes['before']:,} -> {report.file_bytes['after']:,}"
    slower = max(
        (after.instructions[name] / count - 1 for name, count in before.instructions.items() if count), default=0
    )
    yield f"{100 * slower:+.1f} %"
    yield report.proofs["result"].status if report.proofs else "not verified"
    yield _dead_channels(report)
    yield "yes" if report.mended else ""


def _dead_channels(report: Report) -> str:
    """Return the words of the rewrite: "746 of 1,498 channels"."""
    rules = (use.rule.partition(": ") for use in report.rewrites)
    return next((words.removesuffix(" channels") for name, _, words in rules if name == DEAD_CHANNELS), "")
