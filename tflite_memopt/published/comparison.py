"""The published methods side by side on one model: every scheduler, then every planner on the best order."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ..errors import ErrorKind, UsageError
from ..memory.layout import memory_layout
from ..memory.problems import schedule_problem
from ..model.ir.copying import drop_dead_tensors
from ..model.ir.model import Model
from ..options import Options
from ..report.model import Comparison, MethodUse
from ..solvers.plan.methods import STRATEGIES
from ..solvers.plan.methods import solve as solve_plan
from ..solvers.schedule.methods import METHODS, check_method, lacking_package
from ..solvers.schedule.methods import solve as solve_schedule
from .msf_cnn.layers import chain_of
from .msf_cnn.study import fusion_uses
from .shared_objects import STRATEGIES as SHARED
from .shared_objects import solve as solve_objects

ALL = "all"
BESIDE = ("msf-cnn",)
"""Methods that choose more than an order or places, and run only by name."""


def compare_methods(
    model: Model,
    name: str | None,
    schedulers: Sequence[str],
    planners: Sequence[str],
    options: Options,
    progress: Callable[[str], None],
    beside: Sequence[str] = (),
    seconds: float = math.inf,
) -> Comparison:
    """Run the named methods, each for so many ``seconds`` at most; ``("all",)`` stands for all that are installed.

    With all planners the shared-object strategies run too. ``beside``: some of ``BESIDE``.

    ``model`` is a checked one. It is left in the order of the smallest peak, its own where none is better. Raises
    UsageError for an unknown name, and before any method runs where the package of one is not installed;
    UnsupportedModelError for a method beside that has nothing to do in this model.
    """
    orders, plans = _chosen(schedulers, METHODS, "scheduler"), _chosen(planners, STRATEGIES, "planner")
    fuses = bool(_chosen(beside, BESIDE, "method"))
    if ALL in schedulers:
        orders = tuple(method for method in orders if lacking_package(method) is None)
    for method in orders:
        check_method(method)
    layers = chain_of(model.main) if fuses else ()
    profile, limit = options.profile, replace(options.search.search_limit(), time_limit=seconds)
    drop_dead_tensors(model)
    problem = schedule_problem(model.main, memory_layout(model, profile))
    schedules = []
    for method in orders:
        progress(f"ordering {len(problem.steps)} operators: {method}")
        schedules.append(solve_schedule(problem, method, limit))
    best = min((solve_schedule(problem, "as_is", limit), *schedules), key=lambda schedule: schedule.peak_bytes)
    model.main.reorder(best.order)
    layout = memory_layout(model, profile)
    placed = []
    for method in plans:
        progress(f"planning {len(layout.problem.items)} items: {method}")
        placed.append(solve_plan(layout.problem, method, replace(options.search.plan_limit(), time_limit=seconds)))
    objects = [solve_objects(layout.problem.items, method) for method in SHARED if ALL in planners]
    if fuses:
        progress(f"fusing {len(layers)} layers: msf-cnn")
    return Comparison(
        name,
        profile.name,
        len(problem.steps),
        tuple(MethodUse(s.method, s.peak_bytes, s.lower_bound, s.optimal, s.seconds, s.states) for s in schedules),
        best.method,
        tuple(MethodUse(p.method, p.arena_bytes, p.lower_bound, p.optimal, p.seconds, None) for p in placed),
        tuple(MethodUse(o.method, o.total_bytes, o.lower_bound, o.optimal, o.seconds, None) for o in objects),
        len(layers),
        fusion_uses(layers) if fuses else (),
    )


def _chosen(names: Sequence[str], table: Collection[str], kind: str) -> tuple[str, ...]:
    unknown = [name for name in names if name != ALL and name not in table]
    if unknown:
        raise UsageError(
            f"unknown {kind} '{unknown[0]}'; choose '{ALL}' or some of {', '.join(table)}", ErrorKind.UNKNOWN
        )
    return tuple(table) if ALL in names else tuple(names)
