"""Planners measured, with the papers' tables beside ours."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from tflite_memopt.published.shared_objects import STRATEGIES as SHARED
from tflite_memopt.published.shared_objects import positional_maxima
from tflite_memopt.published.shared_objects import solve as solve_objects
from tflite_memopt.solvers.plan import disjunctive
from tflite_memopt.solvers.plan.exact import code
from tflite_memopt.solvers.plan.methods import BEST, STRATEGIES, solve
from tflite_memopt.solvers.plan.problem import Item, Plan, PlanProblem

from .kept_parts import KeptParts
from .markdown_table import row, table
from .networks import Network, named, networks_in
from .plan_models import models

PUBLISHED = ("mobilenet_v1", "mobilenet_v2", "deeplab", "inception_v3", "posenet", "blazeface")
"""The networks of the paper's Tables 1 and 2."""
COUNTS = (100, 300, 1000, 3000, 10_000, 20_000)


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--parts", type=click.Path(file_okay=False, path_type=Path), help="Keep what is done here, and go on.")
def plan(
    sources: tuple[Path, ...],
    output: Path | None,
    parts: Path | None,
) -> None:
    """Every planner on the models of SOURCES (files, or folders of .tflite), and growth."""
    command = f"scripts/bench plan {' '.join(map(named, sources))}"
    text = "\n".join(_document(sources, KeptParts(parts), command))
    if output is None:
        click.echo(text)
    else:
        output.write_text(text + "\n")


def _document(sources: Sequence[Path], parts: KeptParts, command: str) -> Iterator[str]:
    yield "# Offsets of tensors\n"
    way = "compiled" if code() is not disjunctive else "plain Python"
    yield f"Made by `{command}`; the searches ran as {way}. Bytes; tensors are rounded up to 16."
    yield "`best` is the default. `*`: optimal. Compare seconds with seconds of"
    yield "the same row, and trust processor time more than the clock: other work ran on the same cores.\n"
    yield from models(sources, parts)
    yield from parts.part("growth", lambda: list(_growth()))
    yield from parts.part("published", lambda: list(_published_tables(sources)))


def _published_tables(sources: Sequence[Path]) -> Iterator[str]:
    files = [file for path in sources for file in (path.glob("*.tflite") if path.is_dir() else [path])]
    networks = [network for file in files if file.stem in PUBLISHED for network in networks_in(file)]
    yield from _offsets(networks)
    yield from _objects(networks)


def _offsets(networks: Sequence[Network]) -> Iterator[str]:
    yield "## Offset calculation: the networks of Pisarchyk and Lee, Table 2\n"
    yield "Their conclusion: Greedy by Size meets the bound on all but DeepLab, where it is within 8 %. The order of"
    yield "operators is the file's.\n"
    yield from table(f"network | tensors | bound | {' | '.join(STRATEGIES)} | greedy_by_size over bound")
    for network in _published(networks):
        plans = {name: solve(network.items, name) for name in STRATEGIES}
        bound = max(each.lower_bound for each in plans.values())
        over = 100 * (plans["greedy_by_size"].arena_bytes / bound - 1)
        cells = (f"{each.arena_bytes:,}{'*' if each.arena_bytes == bound else ''}" for each in plans.values())
        yield row(network.name, len(network.items.items), f"{bound:,}", *cells, f"{over:.1f} %")
    yield ""


def _objects(networks: Sequence[Network]) -> Iterator[str]:
    yield "## Shared objects: the same networks, Table 1\n"
    yield "Their conclusion: Greedy by Size Improved or Greedy by Breadth is within 16 % of the bound.\n"
    yield from table(f"network | bound | {' | '.join(SHARED)} | better of the two over bound")
    for network in _published(networks):
        items = network.items.items
        found = {name: solve_objects(items, name).total_bytes for name in SHARED}
        bound = sum(positional_maxima(items))
        best = min(found["greedy_by_size_improved"], found["greedy_by_breadth"])
        cells = (f"{size:,}{'*' if size == bound else ''}" for size in found.values())
        yield row(network.name, f"{bound:,}", *cells, f"{100 * (best / bound - 1):.1f} %")
    yield ""


def _growth() -> Iterator[str]:
    yield "## Growth: random items, a few of them long-lived\n"
    names = (BEST, *STRATEGIES)
    yield "How far above the bound, and seconds of processor time.\n"
    yield from table("items | bound | " + " | ".join(names))
    for count in COUNTS:
        click.echo(f"{count} items", err=True)
        plans = [_timed(count, name) for name in names]
        bound = max(each.lower_bound for each, _ in plans)
        cells = (f"{100 * (each.arena_bytes / bound - 1):.2f} %, {seconds:.2f}" for each, seconds in plans)
        yield row(f"{count:,}", f"{bound:,}", *cells)
    yield ""


def _timed(count: int, name: str) -> tuple[Plan, float]:
    problem = _random_problem(count)
    started = time.process_time()
    found = solve(problem, name)
    return found, time.process_time() - started


def _random_problem(count: int) -> PlanProblem:
    rng = random.Random(count)
    items = []
    for start in range(count):
        life = rng.choice((2, 2, 2, 3, 4, 8, 30)) if rng.random() < 0.99 else rng.randint(30, 300)
        items.append(Item(16 * rng.randint(1, 1000), start, start + life))
    return PlanProblem(tuple(items))


def _published(networks: Sequence[Network]) -> list[Network]:
    return [network for name in PUBLISHED for network in networks if network.name == name]
