"""Estimated instructions of each operator against those that QEMU counts, one operator at a time.

The check of tflite_memopt/kernels/prices.py. Operators that stand in the entry graph alone are run: no bodies of loops.
"""

from __future__ import annotations

from pathlib import Path

import click

from scripts.device_lab.build import build_runner, default_cache
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.runs import run_external
from scripts.device_lab.sources import needed_sources
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.work import operator_work
from tflite_memopt.program.cutting import cut

from .markdown_table import row, table

_COLUMNS = "model | operator | input | filter | output | estimated | executed | estimated to executed"


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--build", type=click.Choice(sorted(BUILDS)), default="cortex-m7-cmsis-nn", show_default=True)
def prices(sources: tuple[Path, ...], build: str) -> None:
    """Each operator of SOURCES as a model of its own: instructions as estimated, and as the build's runner counts."""
    costs = profile_named(BUILDS[build].profile).prices
    runner = build_runner(build, BUILDS[build], needed_sources(default_cache()), default_cache())
    for line in table(_COLUMNS):
        click.echo(line)
    for path in sources:
        model = read_model(path.read_bytes())
        totals = [0, 0]
        for operator, piece in zip(model.main.operators, cut(model, range(1, len(model.main.operators))), strict=True):
            data = write_model(piece)
            run = run_external([str(runner)], data, seeded_inputs(read_model(data), samples=1, seed=0))
            if run.error:
                click.echo(row(path.stem, operator.name, "", "", "", "", run.error, ""))
                continue
            found = operator_work(operator, costs) // 100, run.facts["instructions"]
            totals = [total + each for total, each in zip(totals, found, strict=True)]
            given = [tensor.shape if tensor is not None else "" for tensor in operator.inputs]
            shapes = [*given, "", ""][:2]
            click.echo(row(path.stem, operator.name, *shapes, operator.outputs[0].shape, *found, _ratio(*found)))
        click.echo(row(path.stem, "all", "", "", "", *totals, _ratio(*totals)))


def _ratio(estimated: int, executed: int) -> str:
    return f"{estimated / max(1, executed):.2f}"
