"""Scheduling time against the number of operators: the page growth.md, and docs/benchmarks/growth.svg."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from tflite_memopt.graph.search_limit import SearchLimit
from tflite_memopt.schedule.methods import solve
from tflite_memopt.schedule.problem import Schedule, ScheduleProblem, Step

from .markdown_table import row, table

SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
REPEATS = 3


class _Maker:
    """Builds a problem operator by operator; sizes are multiples of 16 bytes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sizes = [1600]
        self.steps: list[Step] = []

    def add(self, *inputs: int, size: int | None = None) -> int:
        self.sizes.append(16 * self.random.randint(1, 100) if size is None else size)
        self.steps.append(Step(tuple(dict.fromkeys(inputs)), (len(self.sizes) - 1,)))
        return len(self.sizes) - 1

    def finish(self, *outputs: int) -> ScheduleProblem:
        return ScheduleProblem(tuple(self.sizes), tuple(self.steps), (0,), outputs)


def chain(count: int) -> ScheduleProblem:
    """One operator after the other, random sizes."""
    maker, last = _Maker(1), 0
    for _ in range(count):
        last = maker.add(last)
    return maker.finish(last)


def grid(count: int) -> ScheduleProblem:
    """A square: each operator reads its neighbors above and to the left."""
    maker, width = _Maker(2), int(count**0.5)
    made: dict[tuple[int, int], int] = {}
    for y in range(width):
        for x in range(width):
            near = [made[place] for place in ((x - 1, y), (x, y - 1)) if place in made]
            made[x, y] = maker.add(*(near or [0]))
    return maker.finish(made[width - 1, width - 1])


def parallel(count: int) -> ScheduleProblem:
    """Branches of two operators between one input and one output."""
    maker = _Maker(3)
    ends = [maker.add(maker.add(0)) for _ in range(count // 2)]
    return maker.finish(maker.add(*ends, size=16))


def random_wiring(count: int) -> ScheduleProblem:
    """Stages of 32 vertices, each of an ADD, a ReLU and two convolutions, that read up to four of the six before."""
    maker, last = _Maker(4), 0
    while len(maker.steps) < count:
        stage: list[int] = []
        read: set[int] = set()
        for _ in range(32):
            known = stage[-6:]
            sources = maker.random.sample(known, min(len(known), maker.random.randint(1, 4))) if known else [last]
            read.update(sources)
            value = sources[0]
            for other in sources[1:]:
                value = maker.add(value, other, size=1600)
            for _ in range(3):
                value = maker.add(value, size=1600)
            stage.append(value)
        last = maker.add(*(value for value in stage if value not in read), size=1600)
    return maker.finish(last)


def stacked_cells(count: int) -> ScheduleProblem:
    """Cells as in NASNet: five pairs of branches that read the two cells before, then a concat."""
    maker, before, last = _Maker(5), 0, 0
    while len(maker.steps) < count:
        values = [before, last]
        joined = []
        for _ in range(5):
            pair = [maker.random.choice(values) for _ in range(2)]
            ends = [maker.add(maker.add(value, size=800), size=800) for value in pair]
            joined.append(maker.add(*ends, size=800))
            values.append(joined[-1])
        before, last = last, maker.add(*joined, size=4000)
    return maker.finish(last)


SHAPES: dict[str, Callable[[int], ScheduleProblem]] = {
    "chain": chain,
    "stacked cells": stacked_cells,
    "random wiring": random_wiring,
    "parallel branches": parallel,
    "grid": grid,
}


@click.command()
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Markdown; the plot beside it.")
@click.option("--time-limit", default=10.0, show_default=True, help="Seconds for each run.")
def growth(output: Path | None, time_limit: float) -> None:
    """Time of best_first against operators, on chains, cells, random wiring, parallel branches and grids."""
    rows = {shape: [_measure(make(count), time_limit) for count in SIZES] for shape, make in SHAPES.items()}
    text = "\n".join(_document(rows, time_limit)) + "\n"
    if output is None:
        click.echo(text)
        return
    output.write_text(text)
    _plot(rows, output.with_suffix(".svg"))


def _measure(problem: ScheduleProblem, time_limit: float) -> Schedule:
    click.echo(f"{len(problem.steps)} operators", err=True)
    first = solve(problem, "best_first", SearchLimit(time_limit))
    if first.seconds > 2:
        return first
    again = [first, *(solve(problem, "best_first", SearchLimit(time_limit)) for _ in range(REPEATS - 1))]
    return sorted(again, key=lambda schedule: schedule.seconds)[REPEATS // 2]


def _document(rows: dict[str, list[Schedule]], time_limit: float) -> Iterator[str]:
    yield "# Scheduling time against operators\n"
    yield f"Made by `scripts/bench growth -o growth.md --time-limit {time_limit:g}`; the shapes are in"
    yield "scripts/benchmarks/growth.py. Seconds of best_first, the median of three runs where one took less than two."
    yield ""
    yield "![seconds against operators](growth.svg)\n"
    yield from table("shape | operators | seconds | states | peak | lower bound | proved")
    for shape, schedules in rows.items():
        for s in schedules:
            gap = "yes" if s.optimal else f"gap {100 * (s.peak_bytes / s.lower_bound - 1):.0f} %"
            yield row(shape, len(s.order), f"{s.seconds:.3f}", s.states, s.peak_bytes, s.lower_bound, gap)
    slopes = {shape: _slope(schedules) for shape, schedules in rows.items()}
    yield "\nSeconds for ten times the operators, from 1,000 upwards where proved: "
    yield "; ".join(f"{shape} x{slope:.0f}" for shape, slope in slopes.items() if slope) + "."


def _slope(schedules: list[Schedule]) -> float:
    """Geometric growth of the time for a factor of ten in operators; 0 when too few runs were proved."""
    points = [s for s in schedules if s.optimal and len(s.order) >= 1000]
    if len(points) < 2:
        return 0.0
    x, y = zip(*((len(s.order), s.seconds) for s in points), strict=True)
    logs = [[math.log10(value) for value in values] for values in (x, y)]
    return float(10 ** statistics.linear_regression(*logs).slope)


def _plot(rows: dict[str, list[Schedule]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "growth"
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for shape, schedules in rows.items():
        proved = [s for s in schedules if s.optimal]
        (line,) = axes.plot([len(s.order) for s in proved], [s.seconds for s in proved], marker="o", label=shape)
        rest = [s for s in schedules if not s.optimal]
        axes.plot([len(s.order) for s in rest], [s.seconds for s in rest], "x", color=line.get_color())
    axes.set(xscale="log", yscale="log", xlabel="operators", ylabel="seconds (x: not proved in time)")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
