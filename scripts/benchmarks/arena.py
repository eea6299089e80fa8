"""The head under ever more permissions: docs/benchmarks/arena.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from tflite_memopt.analysis.working_set import io_lower_bound
from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.ir.dead_tensors import drop_dead_tensors
from tflite_memopt.ir.model import Operator
from tflite_memopt.kernels.portable import PORTABLE
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.kernels.reference import REFERENCE, reference_relations
from tflite_memopt.kernels.relations.model import KernelReuse, no_reuse
from tflite_memopt.memory.arrange import place_in_better_order
from tflite_memopt.memory.figures import MemoryUse
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.schedule_problem import schedule_problem
from tflite_memopt.memory.usage import memory_use
from tflite_memopt.options import Options
from tflite_memopt.pipeline import Result, optimize
from tflite_memopt.schedule.methods import solve

from .markdown_table import row, table
from .networks import named


def _without_overlap(operator: Operator) -> tuple[KernelReuse, ...]:
    return tuple(reuse for reuse in reference_relations(operator) if reuse.kind != "overlap")


APART = replace(PORTABLE, relations=no_reuse)
STAGES: dict[str, tuple[KernelProfile, bool]] = {
    "plan": (APART, False),
    "+ order": (APART, True),
    "+ views": (PORTABLE, True),
    "+ in-place": (replace(REFERENCE, relations=_without_overlap), True),
    "+ overlap": (REFERENCE, True),
}
"""What is permitted, and whether the operators may be put into another order. Views are as far as `portable` goes."""


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--samples", default=20, show_default=True, help="Inputs in the verification on TFLM.")
@click.option("--time-limit", default=20.0, show_default=True, help="Seconds for each search.")
def arena(folder: Path, output: Path | None, samples: int, time_limit: float) -> None:
    """Every model of FOLDER from stock to overlap, measured by TFLM and verified."""
    command = f"scripts/bench arena {named(folder)} --samples {samples} --time-limit {time_limit:g}"
    options = Options(samples=samples, time_limit=time_limit, runtimes=("tflm",), rewrite=False, cascade=False)
    text = "\n".join(_document(folder, options, command))
    if output is None:
        click.echo(text)
    else:
        output.write_text(text + "\n")


def _document(folder: Path, options: Options, command: str) -> Iterator[str]:
    yield "# What views, in-place and overlap are worth\n"
    yield f"Made by `{command}`. Each column adds a permission to the one before; `portable` ends at views, `reference`"
    yield "at overlap. Heads are bytes; a head in **bold** was measured by TFLM and the model verified to the bit"
    yield "there. Total is the arena to reserve on 32 bits: head or planner temporaries, and tail.\n"
    heads = [*table(f"model | stock | {' | '.join(STAGES)} | io bound | overlap / stock")]
    totals = ["## Total to reserve, bytes\n", *table(f"model | stock | {' | '.join(STAGES)}")]
    profiles = ["## Head by kernel profile, bytes\n", *table(f"model | {' | '.join(PROFILES)}")]
    for path in sorted(folder.glob("*.tflite")):
        click.echo(path.stem, err=True)
        data = path.read_bytes()
        stock, uses = _stages(data, options)
        results = {name: _proved(data, replace(options, kernels=name)) for name in ("portable", "reference")}
        shown = {
            stage: _head(uses[stage], results.get({"+ views": "portable", "+ overlap": "reference"}.get(stage, "")))
            for stage in STAGES
        }
        share = uses["+ overlap"].arena_bytes / stock.arena_bytes
        bound = io_lower_bound(read_model(data))
        heads.append(row(path.stem, stock.arena_bytes, *shown.values(), bound, f"{share:.2f}"))
        needs = (f"{use.required_bytes['32']:,}" for use in (stock, *uses.values()))
        totals.append(row(path.stem, *needs))
        reference = results["reference"]
        if reference is not None:
            by_kernels = reference.report.arena_by_kernels
            profiles.append(row(path.stem, *(by_kernels[name] for name in PROFILES)))
    yield "## Head, bytes\n"
    yield from (*heads, "", *totals, "", *profiles)


def _stages(data: bytes, options: Options) -> tuple[MemoryUse, dict[str, MemoryUse]]:
    """What the model needs as it is, and at each stage."""
    model = read_model(data)
    stock = memory_use(model, memory_layout(model, APART), {}, APART)
    uses = {}
    for stage, (profile, reorders) in STAGES.items():
        model = read_model(data)
        drop_dead_tensors(model)
        order = tuple(range(len(model.main.operators)))
        if reorders:
            order = solve(schedule_problem(model.main, memory_layout(model, profile))).order
        uses[stage] = place_in_better_order(model, order, profile, options).memory
    return stock, uses


def _proved(data: bytes, options: Options) -> Result | None:
    """The whole run, when TFLM runs the model."""
    try:
        return optimize(data, options)
    except MemoptError as error:
        click.echo(f"  {options.kernels}: {error}", err=True)
        return None


def _head(use: MemoryUse, result: Result | None) -> str:
    if result is None:
        return f"{use.arena_bytes:,}"
    verdict, head = result.report.equivalence["tflm"], result.report.after.tflm.get("head")
    proved = verdict.equal and head == result.report.after.arena_bytes
    return f"**{head:,}**" if proved else f"{use.arena_bytes:,}"
