"""One of google/minimalloc's problems in a process of its own: plan_within.py PROBLEM.csv CAPACITY [technique off].

Prints the arena of a valid plan and the nodes that it took, or why there is none.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from tflite_memopt.graph.search_limit import SearchLimit
from tflite_memopt.plan.check import check_plan
from tflite_memopt.plan.exact.settings import TreeSettings
from tflite_memopt.plan.exact.strategy import fit
from tflite_memopt.plan.methods import solve_within
from tflite_memopt.plan.problem import FitResult, Item, PlanProblem, arena_bytes

ABLATION_TURNS = 500_000_000
"""Turns of the tree's loops that a run without one of the techniques may take."""


def read_problem(path: Path) -> PlanProblem:
    """Rows of ``id,lower,upper,size`` after a header; lives are half-open and any offset is allowed."""
    rows = (line.split(",") for line in path.read_text().splitlines()[1:])
    return PlanProblem(tuple(Item(int(size), int(lower), int(upper), 1) for _, lower, upper, size in rows))


def without(technique: str) -> TreeSettings:
    """The default settings without one technique; ``orderings`` leaves the first of them."""
    settings = TreeSettings(work_limit=ABLATION_TURNS, work_per_pair=1_000_000)
    return {
        "": settings,
        "decomposes": replace(settings, decomposes=False),
        "ranks_anew": replace(settings, ranks_anew=False),
        "orderings": replace(settings, orderings=settings.orderings[:1]),
        "canonical": replace(settings, canonical=False),
        "infers": replace(settings, infers=False),
    }[technique]


def outcome(problem: PlanProblem, found: FitResult) -> str:
    """The arena and the nodes as text; a plan is checked once more."""
    if found.offsets is None:
        return f"none: {'proved' if found.is_proved else 'gave up'} after {found.nodes} nodes"
    check_plan(problem, found.offsets)
    return f"{arena_bytes(problem, found.offsets)} {found.nodes}"


if __name__ == "__main__":
    given = read_problem(Path(sys.argv[1]))
    if len(sys.argv) > 3:
        result = fit(given, int(sys.argv[2]), SearchLimit(600.0), without(sys.argv[3]))
    else:
        result = solve_within(given, int(sys.argv[2]))
    print(outcome(given, result))
