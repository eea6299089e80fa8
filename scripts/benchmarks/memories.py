"""Tensors over a fast and a slow memory: docs/benchmarks/memories.md."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from tflite_memopt.errors import InfeasibleError
from tflite_memopt.exploring import explore
from tflite_memopt.kernels.chip_memories import CHIP_MEMORIES
from tflite_memopt.kernels.targets import profile_for
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.reading import read_planned
from tflite_memopt.memory.schedule_problem import schedule_problem
from tflite_memopt.memory.spread import spread_use
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.published.sram_study import off_chip_traffic

from .markdown_table import row, table

_SLOW = 1 << 23
_COLUMNS = "model | memories | in use | all bytes moved | largest first | chosen | lower bound | moving blocks | s"


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", default="cortex-m7", show_default=True)
@click.option("--fast", multiple=True, type=int, help="Sizes in KB, each beside 8 MB of slow memory; repeatable.")
@click.option("--chips", is_flag=True, help="The memories of every chip that codegen knows.")
@click.option("--as-it-came", is_flag=True, help="The model itself, in the order of its file.")
@click.option("--explored", is_flag=True, help="What explore picks for each set of memories.")
def memories(
    sources: tuple[Path, ...], target: str, fast: tuple[int, ...], chips: bool, as_it_came: bool, explored: bool
) -> None:
    """SOURCES for a target: bytes that move through slow memory, of the optimized model or of another form of it."""
    sets = {f"{size} KB": {"fast": size << 10, "slow": _SLOW} for size in fast}
    if chips:
        sets |= {name: dict(found) for name, found in CHIP_MEMORIES.items()}
    for line in table(_COLUMNS):
        click.echo(line)
    for path in sources:
        options = Options(target=target, verify=False)
        data = path.read_bytes() if as_it_came or explored else optimize(path, options).model
        for name, sizes in sets.items():
            for line in _rows(path, data, options, name, sizes, explored):
                click.echo(line)


def _rows(
    path: Path, data: bytes, options: Options, name: str, sizes: Mapping[str, int], explored: bool
) -> Iterator[str]:
    start = time.process_time()
    try:
        if explored:
            found = explore(path, options, memories=sizes)
            data = optimize(path, found.options[found.exploration.choice.point]).model
        model, profile = read_planned(data), profile_for(options.target)
        use = spread_use(model, profile, sizes)
    except InfeasibleError as error:
        yield row(path.stem, name, str(error), *[""] * 6)
        return
    seconds = time.process_time() - start
    problem = schedule_problem(model.main, memory_layout(model, profile))
    belady = off_chip_traffic(problem, range(len(problem.steps)), next(iter(sizes.values()))).total
    used = " + ".join(f"{each.used:,}" for each in use.memories)
    yield row(path.stem, name, used, use.moved, use.largest_first, use.slow_bytes, use.bound, belady, f"{seconds:.1f}")
