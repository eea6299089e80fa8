"""Models that take the rows of their image as they come: the arena, and runs in QEMU: docs/benchmarks/feed.md."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import click
import numpy as np

from scripts.device_lab.build import NATIVE, default_cache
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.firmware import compiled_program
from scripts.device_lab.sources import needed_sources
from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.equivalence.verification import open_for
from tflite_memopt.io.files import write_folder
from tflite_memopt.memory.reading import read_planned
from tflite_memopt.options import EFFORTS, Effort, Io, Options
from tflite_memopt.program.firmware import generate_program
from tflite_memopt.program.run import ProgramResult, optimize_in_parts

from .construction import measured
from .markdown_table import row, table

_COLUMNS = (
    "model | input | rows/calls/parts | as it came (head+tail) | as one | fed | "
    "millions of instructions: as it came/as one/fed | fed, more/estimate, % | on the core"
)
_ARENA = re.compile(r"(kArenaBytes = \d+)")
_COUNT = re.compile(r"instructions (\d+)")
_FED = """
#include <algorithm>
#include <cstdio>
#include "counter.h"
#include "program.h"
static model::Program program;
// A driver gives a block of samples at a time, and a row of an image.
constexpr int kBlock = std::max<int>(1, 64 / model::Program::kRowBytes);
int main() {
  static uint8_t rows[kBlock * model::Program::kRowBytes];
  StartCounter();
  uint64_t spent = 0;
  for (int image = 0; image < 2; ++image) {  // the first image also compares checksums
    spent = 0;
    uint32_t state = 12345;
    for (int at = 0; at < model::Program::kRows; at += kBlock) {
      for (uint8_t& byte : rows) {
        state = state * 1664525u + 1013904223u;
        byte = static_cast<uint8_t>(state >> 24);
      }
      const uint64_t start = Instructions();
      if (program.Feed(rows, std::min<int>(kBlock, model::Program::kRows - at)) != kTfLiteOk) return 3;
      spent += Instructions() - start;
    }
  }
  if (!program.Done()) return 4;
  int number = 0;
  for (size_t bytes : model::Program::kOutputBytes) {
    const auto* const output = static_cast<const uint8_t*>(program.output(number++));
    for (size_t at = 0; at < bytes; ++at) printf("%d ", output[at]);
  }
  printf("\\ninstructions %lu\\n", static_cast<unsigned long>(spent));
}
"""


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", default="cortex-m7", show_default=True)
@click.option("--build", type=click.Choice(sorted(BUILDS)), default="cortex-m7-cmsis-nn", show_default=True)
@click.option("--rows", default=0, show_default=True, help="As of optimize --feed; 0: auto.")
@click.option("--parts", "most_parts", type=int, help="Parts at most; none: as many as pay.")
@click.option("--max-extra-work", "work", default=0.2, show_default=True, help="As of optimize, as a fraction.")
@click.option("--io", type=click.Choice(("keep", "int8")), default="keep")
@click.option("--effort", type=click.Choice(EFFORTS), default=Options.effort, show_default=True)
@click.option("--cuts", help="Positions that may be cut, such as 6,13: the search is shorter. Otherwise any.")
@click.option(
    "--no-cascade", is_flag=True, help="As of optimize: no stripes behind the front, which takes much less time."
)
@click.option("--allow-approximate", is_flag=True, help="As of optimize: results may be rounded in another way.")
def feed(
    sources: tuple[Path, ...],
    target: str,
    build: str,
    rows: int,
    most_parts: int | None,
    work: float,
    io: Io,
    effort: Effort,
    cuts: str | None,
    no_cascade: bool,
    allow_approximate: bool,
) -> None:
    """SOURCES on rows of their image, against the whole: the arena in bytes, and instructions in QEMU."""
    for line in table(_COLUMNS):
        click.echo(line)
    options = Options(
        target=target,
        verify=False,
        io=io,
        max_extra_work=work,
        effort=effort,
        cascade=not no_cascade,
        allow_approximate=allow_approximate,
    )
    positions = None if cuts is None else tuple(map(int, cuts.split(",")))
    for path in sources:
        result = optimize_in_parts(path, options, most_parts, feed=rows, cuts=positions)
        click.echo(_row(path, result, options, build))


def _row(path: Path, result: ProgramResult, options: Options, build: str) -> str:
    program, fed, target = result.program, result.program.feed, str(options.target)
    assert fed is not None
    spent, said = executed(result, options, build)
    stock, one = (measured(data, target, build)[1] for data in (path.read_bytes(), result.whole.model))
    before, after = result.whole.report.before, result.whole.report.after
    largest = max(program.parts, key=lambda part: part.required_bytes["table"])
    return row(
        path.stem,
        fed.height * fed.row_bytes,
        f"{fed.rows}/{fed.calls}/{len(program.parts)}",
        _sides(before.required_for_target, before.required_for_target - before.tail_for_target),
        _sides(program.whole_bytes, after.arena_bytes),
        _sides(program.arena, largest.head),
        "/".join(f"{each / 1e6:.2f}" for each in (stock, one, spent)),
        f"{100 * (spent / stock - 1):.1f}/{100 * max(program.slowdown.values()):.1f}",
        said,
    )


def executed(result: ProgramResult, options: Options, build: str) -> tuple[int, str]:
    """Instructions of one image in QEMU, and how its outputs compare with TFLM's: "equal" where nothing is wrong."""
    spent, found, less = _on_core(result, build)
    return spent, "the same in 16 bytes less" if less == found else _apart(found, _wanted(result, options))


def _sides(arena: int, head: int) -> str:
    return f"{arena:,} ({head:,}+{arena - head:,})"


def _apart(found: list[int], wanted: list[int]) -> str:
    if len(found) != len(wanted):
        return "FAILS"
    one, other = (np.asarray(each, np.uint8).view(np.int8).astype(int) for each in (found, wanted))
    return "equal" if found == wanted else f"OFF by {np.abs(one - other).max()}"


def _wanted(result: ProgramResult, options: Options) -> list[int]:
    """What TFLM, with the kernels of the target, makes of the image that the program draws, with the model as one."""
    model, x, drawn = read_planned(result.whole.model), 12345, bytearray()
    (image,) = model.main.inputs
    while len(drawn) < image.nbytes:
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        drawn.append(x >> 24)
    values = np.frombuffer(bytes(drawn), image.dtype.label).reshape(image.shape)
    with open_for(options, model) as interpreters:
        run = interpreters["tflm"].run(RunJob(result.whole.model, [[values]], arena_for(model)))
    return [byte for at in sorted(run.outputs) for byte in run.outputs[at][0].tobytes()]


def _on_core(result: ProgramResult, build: str) -> tuple[int, list[int], list[int]]:
    """Instructions for one image, the bytes of its outputs, and these with 16 bytes less of arena."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {**generate_program(result.program, result.models), "feed_main.cc": _FED.encode()}
        write_folder(folder, files, (), force=True)
        spent, found = _ran(folder, build)
        header = folder / "program.h"
        header.write_text(_ARENA.sub(r"\1 - 16", header.read_text(), count=1))
        return spent, found, _ran(folder, build)[1]


def _ran(folder: Path, build: str) -> tuple[int, list[int]]:
    """Instructions, and the bytes of the outputs; none where it fails."""
    sources = needed_sources(default_cache())
    start = compiled_program(build, BUILDS[build], sources, default_cache(), folder, "feed_main.cc", (f"-I{NATIVE}",))
    command = [*start, "-icount", "shift=0"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=900, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return 0, []  # a fault of an emulated core ends in a loop
    count = _COUNT.search(done.stdout)
    if done.returncode or count is None:
        return 0, []
    return int(count[1]), [int(byte) for byte in done.stdout.splitlines()[-2].split()]
