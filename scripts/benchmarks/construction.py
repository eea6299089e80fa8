"""What making an interpreter costs: instructions of its constructor and of AllocateTensors, in QEMU, and a fit to them.

The prices of ``Construction`` in tflite_memopt/kernels/prices.py are what this command prints.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import numpy.typing as npt

from scripts.device_lab.build import NATIVE, default_cache
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.firmware import compiled_program
from scripts.device_lab.sources import needed_sources
from tflite_memopt.firmware.generate import generate
from tflite_memopt.io.files import write_folder
from tflite_memopt.io.writer import write_model
from tflite_memopt.memory.reading import read_planned
from tflite_memopt.memory.work import Constructed, constructed
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.program.cutting import cut

from .markdown_table import row, table

_MAIN = """
#include <cstdint>
#include <cstdio>
#include <new>
#include "arena.h"
#include "counter.h"
#include "model_data.h"
#include "planner.h"
#include "resolver.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
alignas(16) uint8_t arena[model::kArenaBytes];
alignas(16) unsigned char place[sizeof(tflite::MicroInterpreter)];
int main() {
  static model::Resolver resolver;
  if (!model::RegisterOperators(resolver)) return 1;
  static uint8_t* const memories[] = {arena};
  StartCounter();
  uint64_t start = Instructions();
  while (start > 1000000) start = Instructions();  // the counter has not begun yet
  tflite_memopt::TablePlanner planner(model::kPlan, memories);
  auto* allocator = tflite::MicroAllocator::Create(arena, sizeof(arena), &planner);
  auto* interpreter = new (place) tflite::MicroInterpreter(tflite::GetModel(model::kModelData), resolver, allocator);
  if (interpreter->AllocateTensors() != kTfLiteOk) return 2;
  const uint64_t ready = Instructions();
  if (interpreter->Invoke() != kTfLiteOk) return 3;
  const uint64_t done = Instructions();
  interpreter->~MicroInterpreter();
  const uint64_t end = Instructions();
  printf("making %lu invoke %lu\\n", static_cast<unsigned long>(ready - start + end - done),
         static_cast<unsigned long>(done - ready));
}
"""


class Made(NamedTuple):
    """Instructions of making an interpreter of a model, or of a part of it by number, and of one run."""

    name: str
    part: int
    of: Constructed
    nbytes: int
    making: int
    invoke: int


_FOUND = re.compile(r"making (\d+) invoke (\d+)")
_COLUMNS = "model | part | operators | tensors | channels | bytes | making it | estimate | of Invoke"


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", default="cortex-m7", show_default=True)
@click.option("--build", type=click.Choice(sorted(BUILDS)), default="cortex-m7-cmsis-nn", show_default=True)
@click.option(
    "--parts", default=4, show_default=True, help="Pieces of equal length that each model is cut into as well."
)
def construction(sources: tuple[Path, ...], target: str, build: str, parts: int) -> None:
    """Instructions of making an interpreter of each of SOURCES and of its pieces, and the prices that fit them."""
    found: list[Made] = []
    for path in sources:
        model = read_planned(path.read_bytes())
        count = len(model.main.operators)
        pieces = [model, *cut(model, [count * each // parts for each in range(1, parts)])]
        for number, piece in enumerate(pieces):
            data = optimize(write_model(piece), Options(target=target, verify=False, cascade=False)).model
            made_of = constructed(read_planned(data))
            found.append(Made(path.stem, number, made_of, len(data), *measured(data, target, build)))
    features = np.array([[1, each.of.operators, each.of.tensors, each.of.channels, each.nbytes] for each in found])
    made = np.array([each.making for each in found], np.float64)
    weights = 1 / made  # so that relative errors count
    prices, *_ = np.linalg.lstsq(features * weights[:, None], made * weights, rcond=None)
    for line in _lines(found, features @ prices):
        click.echo(line)
    names = ("interpreter", "operator", "tensor", "channel", "byte")
    click.echo("\n" + ", ".join(f"{name} {price:.1f}" for name, price in zip(names, prices, strict=True)))


def _lines(found: Sequence[Made], estimates: npt.NDArray[np.float64]) -> Iterator[str]:
    yield from table(_COLUMNS)
    for each, estimate in zip(found, estimates, strict=True):
        counts = (each.of.operators, each.of.tensors, each.of.channels, each.nbytes)
        share = f"{each.making / max(1, each.invoke):.1%}"
        yield row(each.name, each.part or "whole", *counts, each.making, f"{estimate:,.0f}", share)


def measured(data: bytes, target: str, build: str) -> tuple[int, int]:
    """Instructions of making an interpreter of a model, and of a run of it, in QEMU."""
    sources = needed_sources(default_cache())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {**generate(data, target, planner="table"), "main.cc": _MAIN.encode()}
        write_folder(folder, files, (), force=True)
        start = compiled_program(build, BUILDS[build], sources, default_cache(), folder, "main.cc", (f"-I{NATIVE}",))
        command = [*start, "-icount", "shift=0"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    numbers = _FOUND.search(said)
    assert numbers is not None, said
    return int(numbers[1]), int(numbers[2])
