"""A model in parts: its arena, its run time, and the class Program in QEMU: docs/benchmarks/parts.md."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from pathlib import Path

import click

from scripts.device_lab.build import NATIVE, default_cache
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.firmware import compiled_program
from scripts.device_lab.sources import needed_sources
from tflite_memopt.errors import UnsupportedModelError
from tflite_memopt.firmware.generate import generate
from tflite_memopt.io.files import write_folder
from tflite_memopt.io.reader import read_model
from tflite_memopt.memory.reading import read_planned
from tflite_memopt.memory.work import construction, instructions
from tflite_memopt.options import Io, Options
from tflite_memopt.program.firmware import generate_program
from tflite_memopt.program.run import ProgramResult, optimize_in_parts
from tflite_memopt.report.words import percent
from tflite_memopt.transform import Cache

from .construction import measured
from .markdown_table import row, table

_COLUMNS = (
    "model | kernels | parts | as it came | as one | in parts | run time | of it making interpreters | "
    "on the core | 16 bytes less | instructions as it came | in parts | of it making them | s"
)
_ARENA = re.compile(r"(kArenaBytes = \d+)")
_ZEROS = re.compile(r"std::memset\(([^;]*), 0, ([^;]*)\);")
_NOISE = """{
      auto* const bytes = static_cast<uint8_t*>(static_cast<void*>(%s));
      for (size_t byte = 0; byte < %s; ++byte) bytes[byte] = static_cast<uint8_t>((byte * 2654435761u >> 13) & %d);
    }"""
"""In the place of zeros, which hide what overwrites them."""
_INVOKE = "if (interpreter_->Invoke() == kTfLiteOk) return kTfLiteOk;"
_CROSSING = """for (size_t i = 0; i < interpreter_->inputs_size(); ++i) {
      uint32_t digest = 2166136261u;  // FNV-1a
      for (size_t at = 0; at < interpreter_->input(i)->bytes; ++at) {
        digest = (digest ^ interpreter_->input(i)->data.uint8[at]) * 16777619u;
      }
      MicroPrintf("part %d takes %x", part_, static_cast<unsigned>(digest));
    }
    """
"""What each part takes is told, too: the outputs may hide what was lost on the way."""
_COUNTED = """
#include "counter.h"
#include "program.h"
static model::Program program;
int main() {
  StartCounter();
  uint64_t start = 0;
  for (int run = 0; run < 2; ++run) {  // the first run also compares checksums
    start = Instructions();
    for (int at = 0; at < static_cast<int>(sizeof(model::Program::kInputBytes) / sizeof(size_t)); ++at) {
      if (program.input(at) == nullptr) return 2;
    }
    if (program.Invoke() != kTfLiteOk) return 3;
  }
  MicroPrintf("instructions %lu", static_cast<unsigned long>(Instructions() - start));
}
"""


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
    """SOURCES as several models in one arena; a count at which no more parts pay has no row of its own."""
    for line in table(_COLUMNS):
        click.echo(line)
    for path in sources:
        found, cache = 0, Cache()
        options = Options(target=target, verify=False, io=io, max_extra_work=work).started()
        for count in counts or (None,):
            start = time.process_time()
            try:
                result = optimize_in_parts(path, options, count, cache=cache)
            except UnsupportedModelError as error:  # it keeps state
                click.echo(row(path.stem, error, *[""] * 12))
                break
            seconds = time.process_time() - start
            if len(result.parts) != found:
                found = len(result.parts)
                click.echo(_row(path, result, target, build, seconds))


def _row(path: Path, result: ProgramResult, target: str | None, build: str | None, seconds: float) -> str:
    program, profile = result.program, Options(target=target).profile
    before = instructions(read_planned(path.read_bytes()), profile)
    several = len(result.parts) > 1
    models = [read_planned(part.model) for part in result.parts] if several else []
    made = {name: sum(construction(model, profile)[name] for model in models) for name in before}
    share = max((made[name] / count for name, count in before.items() if count), default=0.0)
    ran, less = on_core(result, build) if build is not None and several else ("", "")
    return row(
        path.stem,
        program.kernels,
        len(result.parts),
        result.whole.report.before.required_for_target,
        program.whole_bytes,
        program.arena,
        percent(max(program.slowdown.values(), default=0.0)),
        percent(share),
        ran,
        less,
        *counted(path, result, str(target), build),
        f"{seconds:.0f}",
    )


def counted(path: Path, result: ProgramResult, target: str, build: str | None) -> tuple[int | str, ...]:
    """Instructions in QEMU: of the model as it came, of its parts with the interpreters of several, of these alone."""
    if build is None or BUILDS[build].machine is None:
        return "", "", ""
    parts = [part.model for part in result.parts]
    stock, runs = measured(path.read_bytes(), target, build)[1], [measured(part, target, build)[1] for part in parts]
    if len(parts) == 1:
        return stock, runs[0], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {**generate_program(result.program, parts), "main.cc": _COUNTED.encode()}
        write_folder(folder, files, (), force=True)
        (count,) = _said(folder, build, "instructions ", f"-I{NATIVE}")
    spent = int(count.split()[1])
    return stock, spent, spent - sum(runs)


def on_core(result: ProgramResult, build: str) -> tuple[str, str]:
    """Whether the outputs are those of the model as one, and what 16 bytes less of arena lead to."""
    with tempfile.TemporaryDirectory() as name:
        folder, whole = Path(name), Path(name) / "whole"
        models = [part.model for part in result.parts]
        is_quantized = all(tensor.dtype.arena_bytes == 1 for tensor in read_model(models[0]).main.inputs)
        mask = 0xFF if is_quantized else 0x3F  # a float of such bytes is a number of at most one
        _write(folder, generate_program(result.program, models), mask)
        _write(whole, generate(result.whole.model, result.program.target), mask)
        ran, wanted = _said(folder, build), _said(whole, build)
        header = folder / "program.h"
        header.write_text(_ARENA.sub(r"\1 - 16", header.read_text(), count=1))
        less = _said(folder, build)
    equal = bool(wanted) and [line for line in ran if line.startswith("output ")] == wanted
    return "equal" if equal else "DIFFERS", "EQUAL" if less == ran else "refused or wrong"


def _write(folder: Path, files: dict[str, bytes], mask: int) -> None:
    """The files of a firmware, with noise for inputs; what parts take is told."""
    changed = {}
    for path, data in files.items():
        text = data.decode()
        if path == "main.cc":
            text = _ZEROS.sub(lambda found: _NOISE % (*found.groups(), mask), text)
        changed[path] = text.replace(_INVOKE, _CROSSING + _INVOKE).encode()
    write_folder(folder, changed, (), force=True)


def _said(folder: Path, build: str, wanted: str | tuple[str, ...] = ("output ", "part "), *flags: str) -> list[str]:
    """The lines that the program in a folder says and that begin so."""
    sources = needed_sources(default_cache())
    start = compiled_program(build, BUILDS[build], sources, default_cache(), folder, "main.cc", flags)
    if BUILDS[build].machine is not None:
        start = [*start, "-icount", "shift=0"]
    try:
        done = subprocess.run(start, capture_output=True, text=True, check=False, timeout=600, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return []  # a fault of an emulated core ends in a loop
    said = done.stdout.splitlines() if done.returncode == 0 else []
    return [line for line in said if line.startswith(wanted)]
