"""Experiments that set apart why SERENITY's figures do not come out here: wiring, form of a vertex, T, and series."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import geometric_mean, median
from typing import Any, TypeVar

from scripts.benchmarks.kept_parts import KeptParts
from scripts.papers.traffic import peaks_of_random_orders
from tflite_memopt.published.serenity.method import SerenityParts
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule.check import peak_of
from tflite_memopt.solvers.schedule.methods import solve
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step

from .as_printed.serenity import StepLimit, TriedBudget, serenity_as_printed
from .random_cells import random_stage

CELLS = (21, 19, 22)
"""Operators of SwiftNet's cells, Table 2."""
ROOM = 250 / 200.7
T = TypeVar("T", int, float)

_ORDERS = 1_000
_EXPANSIONS = (1, 3)
_PLAIN = SerenityParts(divide=False, budgeting=False)
_DIVIDED = SerenityParts(divide=True, budgeting=False)


@dataclass(frozen=True)
class Shares:
    """Figure 3(b) on random cells: percent of random orders within the room, and optimal: least, median, largest."""

    seeds: int
    fit: Sequence[float]
    optimal: Sequence[float]
    below: int
    """Cells with shares at or below both published ones."""


@dataclass(frozen=True)
class Series:
    """Table 2 on three random cells in series: signatures of the plain program over those of the divided one."""

    seeds: int
    ratios: Sequence[float]
    signatures: Sequence[int]


@dataclass(frozen=True)
class Wiring:
    """Figure 10 on random stages in one form: the method as printed at one T (signatures a step)."""

    form: str
    limit: int
    seeds: int
    operators: float
    solved: int
    factor: float
    best_factor: float
    kahn_factor: float
    signatures: int


def shares(seeds: int = 100) -> Shares:
    """Cells of 21 operators, wired at random, results of one unit or three as in expansions, from seed 0 on."""
    fit, optimal = list[float](), list[float]()
    for seed in range(seeds):
        draw = random.Random(seed)
        wired = random_stage(seed, "vertex", CELLS[0] - 1)
        cell = replace(wired, sizes=tuple(draw.choice(_EXPANSIONS) * size for size in wired.sizes))
        best = solve(cell).peak_bytes
        peaks = peaks_of_random_orders(cell, _ORDERS, 1)
        fit.append(100 * sum(peak <= ROOM * best for peak in peaks) / _ORDERS)
        optimal.append(100 * sum(peak == best for peak in peaks) / _ORDERS)
    below = sum(a <= 4.1 and b <= 0.04 for a, b in zip(fit, optimal, strict=True))
    return Shares(seeds, _three(fit), _three(optimal), below)


def series(seeds: int = 50) -> Series:
    """Three cells of 21, 19 and 22 operators, each read from one tensor."""
    ratios, signatures = list[float](), list[int]()
    for seed in range(seeds):
        cells = [random_stage(3 * seed + place, "vertex", count - 1) for place, count in enumerate(CELLS)]
        whole = in_series(cells)
        plain, divided = (serenity_as_printed(whole, SearchLimit(), StepLimit(), each) for each in (_PLAIN, _DIVIDED))
        ratios.append(plain.states / divided.states)
        signatures.append(divided.states)
    return Series(seeds, _three(ratios), _three(signatures))


def in_series(cells: Sequence[ScheduleProblem]) -> ScheduleProblem:
    """Each cell reads the result of the one before."""
    sizes, steps, last = list(cells[0].sizes[:1]), list[Step](), 0
    for cell in cells:
        (own,) = cell.inputs
        numbers = {own: last}
        for step in cell.steps:
            (made,) = step.outputs
            numbers[made] = len(sizes)
            sizes.append(cell.sizes[made])
            steps.append(replace(step, inputs=tuple(numbers[t] for t in step.inputs), outputs=(numbers[made],)))
        last = numbers[cell.outputs[0]]
    return ScheduleProblem(tuple(sizes), tuple(steps), (0,), (last,))


def wiring(form: str, limit: int, seeds: int = 10) -> Wiring:
    """Random stages of RandWire from seed 0 on; where the method has no schedule the file's order counts."""
    graphs = [random_stage(seed, form) for seed in range(seeds)]
    answers = [serenity_as_printed(each, SearchLimit(), StepLimit(signatures=limit)) for each in graphs]
    files = [solve(each, "as_is").peak_bytes for each in graphs]
    printed = [peak_of(each, answer.order) for each, answer in zip(graphs, answers, strict=True)]
    best = [solve(each).peak_bytes for each in graphs]
    kahn = [solve(each, "kahn").peak_bytes for each in graphs]
    return Wiring(
        form,
        limit,
        seeds,
        sum(len(each.steps) for each in graphs) / seeds,
        sum(answer.lower_bound > 0 for answer in answers),
        geometric_mean([a / b for a, b in zip(files, printed, strict=True)]),
        geometric_mean([a / b for a, b in zip(files, best, strict=True)]),
        geometric_mean([a / b for a, b in zip(kahn, best, strict=True)]),
        int(median(answer.states for answer in answers)),
    )


@dataclass(frozen=True)
class Sweep:
    """Algorithm 2 as printed on the RandWire cells as converted, at one T: cells with a schedule, and the factor."""

    limit: int
    cells: int
    solved: int
    factor: float


def sweep(problems: Sequence[ScheduleProblem], limit: int) -> Sweep:
    """Peaks, without the allocator."""
    answers = [serenity_as_printed(each, SearchLimit(), StepLimit(signatures=limit)) for each in problems]
    files = [solve(each, "as_is").peak_bytes for each in problems]
    gains = [file / peak_of(each, answer.order) for file, each, answer in zip(files, problems, answers, strict=True)]
    return Sweep(limit, len(problems), sum(each.lower_bound > 0 for each in answers), geometric_mean(gains))


@dataclass(frozen=True)
class Budgets:
    """The soft budgets of one random stage, in units, from the hard one on, and its optimum."""

    optimum: int
    tried: Sequence[str]


def budgets(form: str, seed: int, limit: int) -> Budgets:
    """What Algorithm 2 asks for on its way."""
    stage, tried = random_stage(seed, form), list[TriedBudget]()
    serenity_as_printed(stage, SearchLimit(), StepLimit(signatures=limit), tried=tried)
    return Budgets(solve(stage).peak_bytes, [f"{each.budget} {each.outcome}" for each in tried])


@dataclass(frozen=True)
class Why:
    """All experiments."""

    shares: Shares
    series: Series
    wirings: Sequence[Wiring]
    sweeps: Sequence[Sweep]
    example: Budgets


LIMITS = (100, 300, 1_000, 3_000, 10_000)
"""T of the sweeps, in signatures."""
EXAMPLE_LIMIT = 1_000
FORMS = ("vertex", "gathered", "pairs")


def experiments(converted: Sequence[ScheduleProblem], kept: KeptParts) -> Why:
    """All of them; ``converted`` are the RandWire cells as the converter writes them."""
    wirings = [
        Wiring(**kept.part(f"wiring_{form}_{limit}", partial(_made, wiring, form, limit)))
        for form in FORMS
        for limit in LIMITS
    ]
    sweeps = [Sweep(**kept.part(f"sweep_{limit}", partial(_made, sweep, converted, limit))) for limit in LIMITS]
    shared = Shares(**kept.part("shares", partial(_made, shares)))
    in_row = Series(**kept.part("series", partial(_made, series)))
    return Why(shared, in_row, wirings, sweeps, budgets("pairs", 0, EXAMPLE_LIMIT))


def _made(make: Callable[..., Any], *arguments: object) -> dict[str, Any]:
    return asdict(make(*arguments))


def _three(values: Sequence[T]) -> tuple[T, T, T]:
    ordered = sorted(values)
    return ordered[0], ordered[len(ordered) // 2], ordered[-1]
