"""RAM of models in parts, and with an input that comes row by row: docs/results/programs.csv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.memory.work import slowest
from tflite_memopt.options import Options
from tflite_memopt.run.parts.fronts import AUTO
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.run.pipeline import optimize

from .figures import Row, keep
from .models import AFTER, BEFORE, REFUSED, SLOWER, files_of

HEAD, NUMBER = "head after, bytes", "parts"
AS_ONE, PARTS, FED = "", "--parts auto", "--feed auto --parts auto --max-slowdown 20"
LEAST_HEAD = "--kernels reference --objective head --max-slowdown 100"
WAYS = (AS_ONE, PARTS, FED, LEAST_HEAD)
"""Options of optimize. With the last, figures compare with those of tensors alone."""


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--target", default="cortex-m7", show_default=True)
@click.option("--way", "ways", multiple=True, type=click.Choice([*WAYS]), default=[*WAYS], help="Options; repeatable.")
def programs(sources: tuple[Path, ...], target: str, ways: tuple[str, ...]) -> None:
    """RAM of each model of SOURCES, files or folders: as one, in parts, fed by rows; and its least head.

    Unverified, as `models`.
    """
    rows = (
        Row(path.stem, "" if way == LEAST_HEAD else target, f"{way} --no-verify".strip(), _figures(path, target, way))
        for path in files_of(sources)
        for way in ways
    )
    keep("programs", f"scripts/bench programs FOLDER --target {target}", rows)


def _figures(path: Path, target: str, way: str) -> Mapping[str, object]:
    options = Options(target=target, verify=False)
    try:
        if way == LEAST_HEAD:
            options = Options(kernels="reference", objective="head", max_slowdown=1.0, verify=False)
        if way in (AS_ONE, LEAST_HEAD):
            report = optimize(path, options).report
            before, after = report.before, report.after
            slower = slowest(before.instructions, after.instructions)
            made = {BEFORE: before.required_for_target, AFTER: report.answer.reserve, HEAD: after.arena_bytes}
            return made | {SLOWER: f"{100 * slower:.1f}"}
        fed = way == FED
        result = optimize_in_parts(path, replace(options, max_slowdown=0.2 if fed else 0.1), feed=AUTO if fed else None)
    except MemoptError as error:
        return {REFUSED: error}
    program = result.program
    slower = max(program.slowdown.values())
    return {AFTER: program.arena, HEAD: program.head, SLOWER: f"{100 * slower:.1f}", NUMBER: len(program.parts)}
