"""The plan as a table against TFLM's planner: arena, flash, and whether less than the arena is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import click

from scripts.device_lab.build import default_cache
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.firmware import compiled_program
from scripts.device_lab.sources import needed_sources
from tflite_memopt.errors import UsageError
from tflite_memopt.firmware import PLANNERS, Planner
from tflite_memopt.firmware.generate import generate
from tflite_memopt.io.files import write_folder
from tflite_memopt.io.reader import read_model
from tflite_memopt.kernels.support import said_of, support_of
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize

from .markdown_table import row, table

_COLUMNS = "model | arena, TFLM's planner | arena, table | runs there | 16 bytes less | flash, bytes more"
_MAIN, _ARENA = "main.cc", "arena.h"
_SIZE = re.compile(r"(std::size_t kArenaBytes = ForThisCompiler\([^)]*\))")
_USED = re.compile(r"arena_used_bytes \d+ of (\d+)")


@click.command(name="table")
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", default="cortex-m7", show_default=True)
@click.option("--build", type=click.Choice(sorted(BUILDS)), default="cortex-m7-cmsis-nn", show_default=True)
def plan_table(sources: tuple[Path, ...], target: str, build: str) -> None:
    """SOURCES, optimized for a target, as firmware with each planner, compiled and run."""
    for line in table(_COLUMNS):
        click.echo(line)
    for path in sources:
        click.echo(_row_or_fault(path, target, build))


def _row_or_fault(path: Path, target: str, build: str) -> str:
    try:
        return _row(path, target, build)
    except UsageError as error:  # the device lab has no kernels of TFLM's signal library
        return row(path.stem, str(error).splitlines()[-1], *[""] * 4)


def _row(path: Path, target: str, build: str) -> str:
    data = optimize(path, Options(target=target, verify=False)).model
    support = support_of(read_model(data))
    if not support.runs:
        return row(path.stem, said_of(support), *[""] * 4)
    with tempfile.TemporaryDirectory() as name:
        folders = {each: _written(Path(name) / each, data, target, each) for each in PLANNERS}
        ran = {each: _run(folder, build) for each, folder in folders.items()}
        arenas = [int(found[1]) if (found := _USED.search(said)) else said[-80:] for _, said in ran.values()]
        outputs = [[line for line in said.splitlines() if line.startswith("output ")] for _, said in ran.values()]
        is_equal = outputs[0] == outputs[1] and bool(outputs[0]) and ran["table"][0] == 0
        flash = [_flash(folder / f"{_MAIN}.elf", build) for folder in folders.values()]
        less = folders["table"]
        text = (less / _ARENA).read_text()
        (less / _ARENA).write_text(_SIZE.sub(r"\1 - 16", text, count=1))
        code, _ = _run(less, build)
    return row(
        path.stem, *arenas, "equal" if is_equal else "DIFFERS", "refused" if code else "RUNS", flash[1] - flash[0]
    )


def _written(folder: Path, data: bytes, target: str, planner: Planner) -> Path:
    write_folder(folder, generate(data, target, planner=planner), (), force=True)
    return folder


def _run(folder: Path, build: str) -> tuple[int, str]:
    sources = needed_sources(default_cache())
    start = compiled_program(build, BUILDS[build], sources, default_cache(), folder, _MAIN)
    try:
        done = subprocess.run(start, capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return 1, "no answer"  # a fault of an emulated core ends in a loop
    return done.returncode, done.stdout + done.stderr


def _flash(program: Path, build: str) -> int:
    """Code and constants, the model among them."""
    tool = shutil.which("size" if BUILDS[build].machine is None else "arm-none-eabi-size")
    assert tool is not None
    said = subprocess.run([tool, str(program)], capture_output=True, text=True, check=True).stdout
    return sum(map(int, said.splitlines()[1].split()[:2]))
