"""The default planner on models, as they are and in stripes, and as the judge of a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path
from statistics import median
from typing import TypeVar

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.problems import schedule_problem
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.ir.copying import copy_model, drop_dead_tensors
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import PLAN_EFFORT
from tflite_memopt.search.cascade.region import region_of
from tflite_memopt.search.cascade.space import UNROLLED
from tflite_memopt.search.cascade.stripes import even_ends
from tflite_memopt.search.cascade.tiling import Tiling, Unrolled, apply_tilings
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.methods import solve, solve_within
from tflite_memopt.solvers.plan.problem import Plan, PlanProblem
from tflite_memopt.solvers.schedule.methods import solve as solve_schedule

from .kept_parts import KeptParts
from .markdown_table import row, table

PROFILES = ("portable", "reference")
WRITTEN = PLAN_EFFORT["normal"]
REPEATS = 3
FIRSTS, LENGTHS, COUNTS = (0, 1), (2, 4, 7), (2, 4, 8)
"""Regions that are striped: from which step on, how many operators, in how many stripes.

Where neither step begins a region of that length, the first two steps that do are taken.
"""
_ABOUT_100 = range(80, 126)
_CUT_OFF = 1.05
_LONG = 0.2
"""Seconds that a model's plan should not take."""

T = TypeVar("T")
Figures = tuple[int, int, int, float, int, int, float]
"""The fields of ``Judged``."""


@dataclass(frozen=True)
class Judged:
    """One problem of a striped model: its items, its arena and bound, and the seconds of processor time of ``solve``.

    The last three: with as much work as the plan gets that is written.
    """

    items: int
    arena: int
    bound: int
    seconds: float
    written_arena: int
    written_bound: int
    written_seconds: float


def models(sources: Sequence[Path], parts: KeptParts) -> Iterator[str]:
    """The tables, line by line, for .tflite files or folders of them."""
    files = [file for path in sources for file in (sorted(path.glob("*.tflite")) if path.is_dir() else [path])]
    yield "## The default on every model, in its own order and in the order of smallest peak\n"
    yield f"Milliseconds of processor time, the median of {REPEATS}. A bound by `search`: all below it was tried."
    yield f"`written`: with {WRITTEN:.0f} times the work, as for the plan that is written; the same where proved.\n"
    header = "model | kernels | order | items | relations | arena | bound | proved | bound by | strategy | ms"
    yield from table(f"{header} | written")
    for file in files:
        yield from parts.part(f"model_{file.stem}", partial(_unstriped, file))
    yield ""
    yield from _striped(files, parts)


def _unstriped(file: Path) -> list[str]:
    click.echo(file.stem, err=True)
    rows = []
    for profile, order, problem in _in_both_orders(file):
        plan, seconds = _timed(solve, problem)
        cells = (f"{plan.arena_bytes:,}", f"{plan.lower_bound:,}", _gap(plan), plan.bound_by, plan.method)
        size = (len(problem.items), len(problem.relations))
        rows.append(row(file.stem, profile, order, *size, *cells, f"{1000 * seconds:.1f}", _written(plan, problem)))
    return rows


def _written(plan: Plan, problem: PlanProblem) -> str:
    """What more work brings, and its milliseconds."""
    if plan.optimal:
        return "same"
    deeper, seconds = _timed(_solve_as_written, problem)
    return f"{deeper.arena_bytes:,}, {_gap(deeper)}, {1000 * seconds:.1f}"


def _solve_as_written(problem: PlanProblem) -> Plan:
    return solve(problem, limit=SearchLimit(effort=WRITTEN))


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


def _striped(files: Sequence[Path], parts: KeptParts) -> Iterator[str]:
    yield "## The same models in stripes\n"
    yield f"Regions from steps {FIRSTS}, or from the first two steps where a region of that length begins, of {LENGTHS}"
    yield f"operators, in {COUNTS} stripes, with every halo and every edge that the model allows: one problem each, in"
    yield "the order that the stripes come in."
    yield f"The last three columns: with {WRITTEN:.0f} times the work, as for the plan that is written.\n"
    header = "model | kernels | problems | most items | proved | mean gap | largest gap | median ms | most ms"
    yield from table(f"{header} | proved, written | less, at most | most ms, written")
    candidates: list[tuple[bool, bool, float]] = []
    problems: list[Judged] = []
    for file, name in product(files, PROFILES):
        judged, found = parts.part(f"stripes_{file.stem}_{name}", partial(_judge_stripes, file, name))
        results = [Judged(*each) for each in judged]
        candidates += [(each[0], each[1], each[2]) for each in found]
        problems += results
        if results:
            yield _summary(file.stem, name, results)
    yield ""
    yield from _all_of(problems)
    yield from _judging(candidates)


def _judge_stripes(file: Path, name: str) -> tuple[list[Figures], list[tuple[bool, bool, float]]]:
    """Every striped problem solved; and those of about 100 items as candidates: do they fit, is that refuted, seconds.

    What a search pays for a candidate when it knows a good one already.
    """
    problems = list(_stripings(file, name))
    click.echo(f"{file.stem}, {len(problems)} times in stripes, {name}", err=True)
    judged = [_judged(problem) for problem in problems]
    alike = [(problem, each[1]) for problem, each in zip(problems, judged, strict=True) if each[0] in _ABOUT_100]
    if not alike:
        return judged, []
    within = partial(solve_within, capacity=int(min(arena for _, arena in alike) * _CUT_OFF))
    found = [_timed(within, problem) for problem, _ in alike]
    return judged, [(fit.offsets is not None, fit.is_proved, seconds) for fit, seconds in found]


def _judged(problem: PlanProblem) -> Figures:
    """As ``Judged``. What is proved would be the same with more work, and is not run again."""
    plan, seconds = _timed(solve, problem, repeats=1)
    deeper, longer = (plan, seconds) if plan.optimal else _timed(_solve_as_written, problem, repeats=1)
    written = (deeper.arena_bytes, deeper.lower_bound, longer)
    return len(problem.items), plan.arena_bytes, plan.lower_bound, seconds, *written


def _stripings(file: Path, name: str) -> Iterator[PlanProblem]:
    whole = _read(file)
    for (first, length), count, mode in product(_regions(whole), COUNTS, UNROLLED):
        model = copy_model(whole)
        try:
            height = model.main.operators[first + length - 1].outputs[0].shape[1]
            apply_tilings(model, [Tiling(first, first + length, Unrolled(even_ends(height, count), *mode))])
            yield memory_layout(model, profile_named(name)).problem
        except (MemoptError, IndexError):
            continue


def _regions(model: Model) -> Iterator[tuple[int, int]]:
    """First step and length of each region, in the order of first steps: see ``FIRSTS``."""
    found = []
    for length in LENGTHS:
        own = [first for first in FIRSTS if _is_region(model, first, length)]
        later = (first for first in range(len(model.main.operators)) if _is_region(model, first, length))
        found += [(first, length) for first in own or islice(later, len(FIRSTS))]
    yield from sorted(found)


def _is_region(model: Model, first: int, length: int) -> bool:
    operators = model.main.operators
    inside = operators[first : first + length]
    return len(inside) == length and not isinstance(region_of(model.main, inside), str)


def _summary(model: str, profile: str, results: Sequence[Judged]) -> str:
    gaps = [100 * (each.arena / each.bound - 1) for each in results]
    times = [1000 * each.seconds for each in results]
    proved = sum(each.arena == each.bound for each in results)
    most = max(each.items for each in results)
    shares = (f"{sum(gaps) / len(gaps):.2f} %", f"{max(gaps):.2f} %", f"{median(times):.1f}", f"{max(times):.1f}")
    less = max(100 * (1 - each.written_arena / each.arena) for each in results)
    slowest = f"{1000 * max(each.written_seconds for each in results):.1f}"
    return row(
        model, profile, len(results), most, proved, *shares, _proved_as_written(results), f"{less:.2f} %", slowest
    )


def _proved_as_written(results: Sequence[Judged]) -> int:
    return sum(each.written_arena == each.written_bound for each in results)


def _all_of(results: Sequence[Judged]) -> Iterator[str]:
    slow = sum(each.seconds > _LONG for each in results)
    proved = sum(each.arena == each.bound for each in results)
    times = sorted(1000 * each.seconds for each in results)
    yield f"Of all {len(results)} problems {proved} are proved optimal. Median {median(times):.1f} ms, nine of ten"
    yield f"below {times[len(times) * 9 // 10]:.1f} ms, the longest {times[-1]:.1f}; {slow} take more than {_LONG} s."
    less = [100 * (1 - each.written_arena / each.arena) for each in results if each.written_arena < each.arena]
    worse = sum(each.written_arena > each.arena for each in results)
    long = [each.written_seconds for each in results if each.written_seconds > _LONG]
    yield f"With {WRITTEN:.0f} times the work {_proved_as_written(results)} are proved. {len(less)} arenas are less, by"
    yield f"{sum(less) / max(1, len(less)):.2f} % in the mean and {max(less, default=0):.2f} % at most, {worse} larger."
    yield f"{len(long)} take more than {_LONG} s, the longest {max(long, default=0):.2f} s.\n"


def _judging(results: Sequence[tuple[bool, bool, float]]) -> Iterator[str]:
    times = sorted(1000 * seconds for _, _, seconds in results)
    count, low, high = len(times), _ABOUT_100.start, _ABOUT_100[-1]
    fits = sum(is_fit for is_fit, _, _ in results)
    refused = sum(is_refuted for _, is_refuted, _ in results)
    yield "## Judging one candidate of a search\n"
    yield f"The {count} problems above with {low} to {high} items, as a search meets them: the cut-off is"
    yield f"{_CUT_OFF:.2f} times the smallest arena of the same model and kernels. {fits} fit, {refused} are proved not"
    yield f"to, {count - fits - refused} stay open. Milliseconds of processor time: median {median(times):.1f}, nine"
    yield f"of ten below {times[count * 9 // 10]:.1f}, most {times[-1]:.1f}.\n"
