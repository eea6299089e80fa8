"""google/minimalloc's problems: each in a process of its own, beside its own solver, and without each technique."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click

from tflite_memopt.plan.methods import solve

from .kept_parts import KeptParts
from .markdown_table import row, table
from .plan_within import ABLATION_TURNS, read_problem

CAPACITY = 1_048_576
REPEATS = 3
TECHNIQUES = ("decomposes", "ranks_anew", "orderings", "canonical", "infers")
_SCRIPT = str(Path(__file__).with_name("plan_within.py"))


def hard_problems(folder: Path, binary: Path | None, parts: KeptParts) -> Iterator[str]:
    """The tables, line by line; ``binary`` is google/minimalloc's, built by the reader."""
    paths = sorted(folder.glob("*.csv"))
    yield "## google/minimalloc's hard problems: capacity 1,048,576\n"
    yield f"Seconds of a whole process on the clock, and of processor time, the medians of {REPEATS}: ours"
    yield "(`scripts/benchmarks/plan_within.py PROBLEM 1048576`, which checks the plan, too)" + (
        ", and google/minimalloc's own solver, in turns with it.\n" if binary else ".\n"
    )
    header = "problem | items | arena | nodes | clock | processor"
    yield from table(header + (" | minimalloc, clock | processor" if binary else ""))
    sums = [0.0] * (4 if binary else 2)
    for path in paths:
        found, seconds = parts.part(f"hard_{path.stem}", partial(_measured, path, binary))
        sums = [total + each for total, each in zip(sums, seconds, strict=True)]
        arena, nodes = (f"{int(word):,}" for word in found.split())
        yield row(path.stem, len(read_problem(path).items), arena, nodes, *(f"{each:.2f}" for each in seconds))
    yield row("all", "", "", "", *(f"{total:.2f}" for total in sums))
    yield ""
    yield from parts.part("optima", lambda: list(_optima(paths)))
    yield from _ablation(paths, parts)


def _measured(path: Path, binary: Path | None) -> tuple[str, list[float]]:
    """What we found, and the seconds: ours, then theirs if there is a binary."""
    click.echo(path.stem, err=True)
    ours, theirs = [], []
    with TemporaryDirectory() as folder:
        for _ in range(REPEATS):
            ours.append(_run([sys.executable, _SCRIPT, str(path), str(CAPACITY)]))
            if binary is not None:
                output = f"--output={folder}/plan.csv"
                theirs.append(_run([str(binary), f"--capacity={CAPACITY}", f"--input={path}", output]))
    seconds = [(clock, used) for clock, used, _ in ours], [(clock, used) for clock, used, _ in theirs]
    return ours[0][2], [median(column) for each in seconds if each for column in zip(*each, strict=True)]


def _run(command: Sequence[str]) -> tuple[float, float, str]:
    """Seconds on the clock, seconds of processor time, and what was printed."""
    before, started = os.times(), time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, after = time.perf_counter() - started, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, used, result.stdout.strip()


def _optima(paths: Sequence[Path]) -> Iterator[str]:
    yield "The smallest arena instead of any within the capacity, by the default `best`:\n"
    yield from table("problem | arena | bound | proved | strategy | seconds of processor time")
    for path in paths:
        problem = read_problem(path)
        started = time.process_time()
        plan = solve(problem)
        seconds = time.process_time() - started
        proved = "yes" if plan.optimal else f"gap {100 * (plan.arena_bytes / plan.lower_bound - 1):.2f} %"
        cells = (f"{plan.arena_bytes:,}", f"{plan.lower_bound:,}", proved, plan.method)
        yield row(path.stem, *cells, f"{seconds:.2f}")
    yield ""


def _ablation(paths: Sequence[Path], parts: KeptParts) -> Iterator[str]:
    yield "Nodes to a plan within the capacity, without one technique at a time; `-`: none within"
    yield f"{ABLATION_TURNS:,} turns of the tree's loops.\n"
    yield from table("problem | all | " + " | ".join(TECHNIQUES))
    for path in paths:
        yield parts.part(f"ablation_{path.stem}", partial(_ablated, path))
    yield ""


def _ablated(path: Path) -> str:
    click.echo(f"{path.stem}, one technique less", err=True)
    return row(path.stem, *(_nodes(path, technique) for technique in ("", *TECHNIQUES)))


def _nodes(path: Path, technique: str) -> str:
    command = [sys.executable, _SCRIPT, str(path), str(CAPACITY), technique]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "-" if found.startswith("none") else f"{int(found.split()[1]):,}"
