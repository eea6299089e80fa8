"""The arena of a graph in the order and with the offsets that ``optimize`` would choose, and no more of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analysis.macs import model_macs
from ..ir.model import Model
from ..kernels.arena import arena_beside_head
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.figures import LibraryNeed, MemoryUse
from ..memory.in_force import head_in_force, offsets_to_write
from ..memory.layout import MemoryLayout, memory_layout
from ..memory.libraries import fitted
from ..memory.schedule_problem import schedule_problem
from ..memory.together import solve_together
from ..options import Options
from ..schedule.bounds import head_lower_bound
from ..schedule.methods import solve as solve_schedule


@dataclass(frozen=True)
class PlannedNeed:
    """Bytes of the arena and of its head, and multiply-accumulates."""

    required: int
    head: int
    macs: int


def planned_need(model: Model, profile: KernelProfile, options: Options) -> PlannedNeed | None:
    """What ``memory.arrange`` finds for a model without an offline plan, each thing computed once.

    None where the firmware may link several libraries, or would reserve more than for the model as it stands: see
    ``need_for_every_library``.
    """
    if profile.libraries:
        return None
    layout = memory_layout(model, profile)
    own = tuple(range(len(model.main.operators)))
    head, order = _head(model, layout, options), own
    if options.scheduler == "as_is":
        return PlannedNeed(_required(model, profile, head, own), head, model_macs(model))
    problem = schedule_problem(model.main, layout)
    schedule = solve_schedule(problem, options.scheduler, options.search_limit())
    if schedule.order != own and head > head_lower_bound(problem, schedule.lower_bound):
        other = memory_layout(model, profile, order=schedule.order)
        # Its own order wins when both are equal, as in ``arrange``.
        head, order = min((head, own), (_head(model, other, options), schedule.order), key=lambda each: each[0])
    required = _required(model, profile, head, order)
    if order != own and required > _required(model, profile, head_in_force(layout, {}), own):
        return None
    return PlannedNeed(required, head, model_macs(model))


def need_for_every_library(
    model: Model, before: Mapping[str, LibraryNeed], profile: KernelProfile, options: Options
) -> PlannedNeed | None:
    """The least with which no library needs more than ``before``; None where each way makes one worse."""
    arrangement = arrange(model, profile, options)
    found = fitted(model, arrangement, before, profile, options)
    return None if found is None else need_in(found.placement.memory)


def need_in(memory: MemoryUse) -> PlannedNeed:
    """The figures of a report that an oracle gives."""
    return PlannedNeed(memory.required_for_target, memory.arena_bytes, memory.macs)


def _head(model: Model, layout: MemoryLayout, options: Options) -> int:
    plan = solve_together(layout.problem, layout.groups, options.planner, options.plan_limit())
    return head_in_force(layout, offsets_to_write(model, layout, plan.offsets))


def _required(model: Model, profile: KernelProfile, head: int, order: Sequence[int]) -> int:
    return arena_beside_head(model, profile.requests, profile.abi, order).with_head(head).required
