"""The facts of a model that reports show: its memory, arena, needs, and interface under a plan, in plain data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..kernels.profile import KernelProfile
from ..model.io import offline_plan
from ..model.ir.model import Model
from ..solvers.schedule.problem import head_lower_bound, memory_graph, schedule_lower_bound
from .arrange import Arrangement
from .figures import (
    ArenaMap,
    Bounds,
    InterfaceTensor,
    MemoryUse,
    StepUse,
    arena_map,
    bounds_of,
    interface_of,
    memory_use,
    operator_kinds,
    step_uses,
)
from .layout import memory_layout
from .problems import schedule_problem
from .reserve import LibraryNeed, needs_by_library


@dataclass(frozen=True)
class ModelFacts:
    """Facts of a model under one plan, recorded before later stages change the model."""

    memory: MemoryUse
    arena: ArenaMap
    libraries: dict[str, LibraryNeed]
    interface: tuple[InterfaceTensor, ...]
    kinds: frozenset[str]


def facts_in_file(model: Model, profile: KernelProfile) -> ModelFacts:
    """Return the facts of a model under the offline plan in its file, if any."""
    planned, layout = offline_plan.decode(model) or {}, memory_layout(model, profile)
    memory = memory_use(model, layout, planned, profile)
    arena = arena_map(model, layout, planned, memory, profile)
    needs = needs_by_library(model, planned, profile)
    return ModelFacts(memory, arena, needs, interface_of(model), operator_kinds(model))


def facts_of_result(
    model: Model, found: Arrangement, profile: KernelProfile, turned: Collection[str] = ()
) -> ModelFacts:
    """Return the facts of a model as it is arranged; ``turned``: names of what has its channels last now."""
    placement = found.placement
    arena = arena_map(model, placement.layout, placement.offsets, placement.memory, profile)
    needs = needs_by_library(model, placement.offsets, profile) if found.needs is None else dict(found.needs)
    return ModelFacts(placement.memory, arena, needs, interface_of(model, turned), operator_kinds(model))


def limits_in_file(model: Model, profile: KernelProfile) -> tuple[Bounds, tuple[StepUse, ...]]:
    """Return lower bounds on the head, and every operator with its working set, in the order of the file."""
    layout = memory_layout(model, profile)
    problem = schedule_problem(model.main, layout)
    bounds = bounds_of(model, layout, head_lower_bound(problem, schedule_lower_bound(problem)))
    return bounds, step_uses(model, layout, offline_plan.decode(model) or {})


def bound_of_any_order(found: Arrangement) -> int:
    """Return bytes of the head that no plan of any order goes below."""
    if memory_graph(found.problem).has_one_order:
        return found.placement.plan.lower_bound
    return head_lower_bound(found.problem, found.schedule.lower_bound)
