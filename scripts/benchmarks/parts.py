"""A model in parts: its arena, its run time, and the class Program in QEMU: docs/benchmarks/parts.md."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from pathlib import Path

import click

from scripts.device_lab.build import default_cache
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.firmware import compiled_program
from scripts.device_lab.sources import needed_sources
from tflite_memopt.firmware.generate import generate
from tflite_memopt.memory.reading import read_planned
from tflite_memopt.memory.work import construction, instructions
from tflite_memopt.options import Io, Options
from tflite_memopt.program.firmware import generate_program
from tflite_memopt.program.run import ProgramResult, optimize_in_parts
from tflite_memopt.report.words import percent

from .markdown_table import row, table

_COLUMNS = (
    "model | kernels | parts | as it came | as one | in parts | run time | of it making interpreters | "
    "copied, arena + buffer | on the core | 16 bytes less | s"
)
_ARENA = re.compile(r"(kArenaBytes = \d+)")


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", help="None: any kernels.")
@click.option(
    "--build", type=click.Choice(sorted(BUILDS)), help="Run the class Program there; else it is only counted."
)
@click.option("--count", "counts", multiple=True, type=int, help="Parts at most; repeatable; none: as many as pay.")
@click.option("--max-extra-work", "work", type=float, help="As of optimize, as a fraction.")
@click.option("--io", type=click.Choice(("keep", "int8")), default="keep")
def parts(
    sources: tuple[Path, ...],
    target: str | None,
    build: str | None,
    counts: tuple[int, ...],
    work: float | None,
    io: Io,
) -> None:
    """SOURCES as several models in one arena."""
    for line in table(_COLUMNS):
        click.echo(line)
    for path in sources:
        for count in counts or (None,):
            start = time.process_time()
            result = optimize_in_parts(path, Options(target=target, verify=False, io=io, max_extra_work=work), count)
            seconds = time.process_time() - start
            click.echo(_row(path, result, target, build, seconds))


def _row(path: Path, result: ProgramResult, target: str | None, build: str | None, seconds: float) -> str:
    program, profile = result.program, Options(target=target).profile
    before = instructions(read_planned(path.read_bytes()), profile)
    several = len(result.parts) > 1
    models = [read_planned(part.model) for part in result.parts] if several else []
    made = {name: sum(construction(model, profile)[name] for model in models) for name in before}
    share = max((made[name] / count for name, count in before.items() if count), default=0.0)
    copy = program.copy_bytes
    ran, less = _on_core(result, build) if build is not None and several else ("", "")
    return row(
        path.stem,
        program.kernels,
        len(result.parts),
        result.whole.report.before.required_for_target,
        program.whole_bytes,
        program.arena,
        percent(max(program.slowdown.values(), default=0.0)),
        percent(share),
        f"{copy['arena']:,} + {copy['handover']:,}",
        ran,
        less,
        f"{seconds:.0f}",
    )


def _on_core(result: ProgramResult, build: str) -> tuple[str, str]:
    """Whether the outputs are those of the model as one, and what 16 bytes less of arena lead to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = [part.model for part in result.parts]
        for path, text in generate_program(result.program, models).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text)
        ran = _said(folder, build)
        whole = folder / "whole"
        for path, text in generate(result.whole.model, result.program.target).items():
            (whole / path).parent.mkdir(parents=True, exist_ok=True)
            (whole / path).write_bytes(text)
        wanted = _said(whole, build)
        header = folder / "program.h"
        header.write_text(_ARENA.sub(r"\1 - 16", header.read_text(), count=1))
        less = _said(folder, build)
    equal = bool(wanted) and ran == wanted
    return "equal" if equal else "DIFFERS", "EQUAL" if less == wanted else "refused or wrong"


def _said(folder: Path, build: str) -> list[str]:
    sources = needed_sources(default_cache())
    start = compiled_program(build, BUILDS[build], sources, default_cache(), folder, "main.cc")
    try:
        done = subprocess.run(start, capture_output=True, text=True, check=False, timeout=600, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return []  # a fault of an emulated core ends in a loop
    return [line for line in done.stdout.splitlines() if line.startswith("output ")] if done.returncode == 0 else []
