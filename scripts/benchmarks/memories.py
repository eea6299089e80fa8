"""Tensors over a fast and a slow memory: docs/benchmarks/memories.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from tflite_memopt.graph.search_limit import SearchLimit
from tflite_memopt.kernels.targets import profile_for
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.reading import read_planned
from tflite_memopt.memory.spread import memories_problem, spread_model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.plan.memories import MemoriesProblem, part_of
from tflite_memopt.plan.methods import solve_within

from .markdown_table import row, table

_SLOW = 1 << 23
_COLUMNS = "model | fast, bytes | all bytes moved | largest first | chosen | lower bound | fast used | slow used | s"


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", default="cortex-m7", show_default=True)
@click.option("--fast", multiple=True, type=int, default=(16, 32, 64), show_default=True, help="Sizes in KB.")
def memories(sources: tuple[Path, ...], target: str, fast: tuple[int, ...]) -> None:
    """SOURCES, optimized for a target: bytes that move through slow memory beside so much fast memory."""
    for line in table(_COLUMNS):
        click.echo(line)
    for path in sources:
        data = optimize(path, Options(target=target, verify=False)).model
        for line in _rows(path.stem, data, target, fast):
            click.echo(line)


def _rows(name: str, data: bytes, target: str, fast: tuple[int, ...]) -> Iterator[str]:
    model, profile = read_planned(data), profile_for(target)
    layout = memory_layout(model, profile)
    for size in fast:
        capacities = (size << 10, _SLOW)
        problem = memories_problem(model, layout, capacities)
        start = time.process_time()
        found = spread_model(model, layout, capacities, SearchLimit())
        seconds = time.process_time() - start
        moved = (sum(problem.traffic), largest_first(problem), found.slow_bytes, found.bound)
        yield row(name, size << 10, *moved, *found.used, f"{seconds:.1f}")


def largest_first(problem: MemoriesProblem) -> int:
    """Bytes through slow memory when the largest items that fit go into the fast one."""
    items = problem.plan.items
    chosen: list[int] = []
    for number in sorted(range(len(items)), key=lambda each: -items[each].size):
        part = part_of(problem.plan, sorted([*chosen, number]))
        if solve_within(part, problem.capacities[0], SearchLimit(work=0.02)).offsets is not None:
            chosen.append(number)
    return sum(problem.traffic) - sum(problem.traffic[number] for number in chosen)
