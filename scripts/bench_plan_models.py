"""The default planner on models, as they are and in stripes, and as the judge of a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import TypeVar

import click
from markdown_table import row, table

from tflite_memopt.cascade.cut_table import even_ends
from tflite_memopt.cascade.striped_region import MODES, StripedRegion, apply_stripes
from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.ir.dead_tensors import drop_dead_tensors
from tflite_memopt.ir.model import Model
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.schedule_problem import schedule_problem
from tflite_memopt.plan.methods import solve, solve_within
from tflite_memopt.plan.problem import FitResult, Plan, PlanProblem
from tflite_memopt.schedule.methods import solve as solve_schedule

PROFILES = ("portable", "reference")
REPEATS = 3
FIRSTS, LENGTHS, COUNTS = (0, 1), (2, 4, 7), (2, 4, 8)
"""Regions that are striped: from which step on, how many operators, in how many stripes."""
_ABOUT_100 = range(80, 126)
_CUT_OFF = 1.05

T = TypeVar("T")


def models(sources: Sequence[Path]) -> Iterator[str]:
    """The tables, line by line, for .tflite files or folders of them."""
    files = [file for path in sources for file in (sorted(path.glob("*.tflite")) if path.is_dir() else [path])]
    yield "## The default on every model, in its own order and in the order of smallest peak\n"
    yield f"Milliseconds of processor time, the median of {REPEATS}. A bound by `search`: all below it was tried.\n"
    yield from table("model | kernels | order | items | relations | arena | bound | proved | bound by | strategy | ms")
    for file in files:
        click.echo(file.stem, err=True)
        for profile, order, problem in _in_both_orders(file):
            plan, seconds = _timed(solve, problem)
            cells = (f"{plan.arena_bytes:,}", f"{plan.lower_bound:,}", _gap(plan), plan.bound_by, plan.method)
            size = (len(problem.items), len(problem.relations))
            yield row(file.stem, profile, order, *size, *cells, f"{1000 * seconds:.1f}")
    yield ""
    yield from _striped(files)


def _in_both_orders(file: Path) -> Iterator[tuple[str, str, PlanProblem]]:
    for name in PROFILES:
        model, profile = _read(file), profile_named(name)
        layout = memory_layout(model, profile)
        yield name, "own", layout.problem
        model.main.reorder(solve_schedule(schedule_problem(model.main, layout)).order)
        problem = memory_layout(model, profile).problem
        if problem != layout.problem:
            yield name, "best_first", problem


def _read(file: Path) -> Model:
    model = read_model(file.read_bytes())
    drop_dead_tensors(model)
    return model


def _timed(run: Callable[[PlanProblem], T], problem: PlanProblem, repeats: int = REPEATS) -> tuple[T, float]:
    """The result, and the median of the processor seconds; every run works out everything anew."""
    seconds = []
    for _ in range(repeats):
        fresh = PlanProblem(problem.items, problem.relations)
        started = time.process_time()
        result = run(fresh)
        seconds.append(time.process_time() - started)
    return result, median(seconds)


def _gap(plan: Plan) -> str:
    return "yes" if plan.optimal else f"gap {100 * (plan.arena_bytes / plan.lower_bound - 1):.2f} %"


def _striped(files: Sequence[Path]) -> Iterator[str]:
    yield "## The same models in stripes\n"
    yield f"Regions from steps {FIRSTS}, of {LENGTHS} operators, in {COUNTS} stripes, with every halo and every edge"
    yield "that the model allows: one problem each, in the order that the stripes come in.\n"
    yield from table("model | kernels | problems | most items | proved | mean gap | largest gap | median ms | most ms")
    judged: list[list[PlanProblem]] = []
    for file, name in product(files, PROFILES):
        problems = list(_stripings(file, name))
        if problems:
            click.echo(f"{file.stem}, {len(problems)} times in stripes, {name}", err=True)
            judged.append([problem for problem in problems if len(problem.items) in _ABOUT_100])
            yield _summary(file.stem, name, problems)
    yield ""
    yield from _judging([alike for alike in judged if alike])


def _stripings(file: Path, name: str) -> Iterator[PlanProblem]:
    steps = len(_read(file).main.operators)
    for first, length, count, mode in product(FIRSTS, LENGTHS, COUNTS, MODES):
        model = _read(file)
        try:
            if first + length <= steps:
                height = model.main.operators[first + length - 1].outputs[0].shape[1]
                apply_stripes(model, [StripedRegion(first, first + length, even_ends(height, count), *mode)])
                yield memory_layout(model, profile_named(name)).problem
        except (MemoptError, IndexError):
            continue


def _summary(model: str, profile: str, problems: Sequence[PlanProblem]) -> str:
    results = [_timed(solve, problem, repeats=1) for problem in problems]
    gaps = [100 * (plan.arena_bytes / plan.lower_bound - 1) for plan, _ in results]
    times = [1000 * seconds for _, seconds in results]
    proved = sum(plan.optimal for plan, _ in results)
    most = max(len(problem.items) for problem in problems)
    shares = (f"{sum(gaps) / len(gaps):.2f} %", f"{max(gaps):.2f} %", f"{median(times):.1f}", f"{max(times):.1f}")
    return row(model, profile, len(problems), most, proved, *shares)


def _judging(problems: Sequence[Sequence[PlanProblem]]) -> Iterator[str]:
    """What a search pays for a candidate when it knows a good one already."""
    results: list[tuple[FitResult, float]] = []
    for alike in problems:
        cut_off = int(min(solve(problem).arena_bytes for problem in alike) * _CUT_OFF)
        results += [_timed(partial(solve_within, capacity=cut_off), problem) for problem in alike]
    times = sorted(1000 * seconds for _, seconds in results)
    count, low, high = len(times), _ABOUT_100.start, _ABOUT_100[-1]
    fits = sum(found.offsets is not None for found, _ in results)
    refused = sum(found.is_proved for found, _ in results)
    yield "## Judging one candidate of a search\n"
    yield f"The {count} problems above with {low} to {high} items, as a search meets them: the cut-off is"
    yield f"{_CUT_OFF:.2f} times the smallest arena of the same model and kernels. {fits} fit, {refused} are proved not"
    yield f"to, {count - fits - refused} stay open. Milliseconds of processor time: median {median(times):.1f}, nine"
    yield f"of ten below {times[count * 9 // 10]:.1f}, most {times[-1]:.1f}.\n"
