"""Offsets for a model in a given order, and the choice between two orders by what their plans really need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..graph.search_limit import SearchLimit
from ..ir.model import Model, Tensor
from ..kernels.profile import KernelProfile
from ..kernels.profiles import PROFILES
from ..options import Options
from ..plan.methods import solve
from ..plan.problem import Plan
from ..schedule.methods import solve as solve_schedule
from .figures import MemoryUse, SharingUse
from .in_force import offsets_to_write
from .layout import MemoryLayout, memory_layout
from .schedule_problem import schedule_problem
from .usage import memory_use

_OTHER_PROFILES_SECONDS = 0.5
"""Time for the plan of a profile that was not asked for."""


@dataclass(frozen=True)
class Placed:
    """``order`` of the main graph's operators, relative to the order that the model came with, and its plan.

    ``planned`` are the offsets to write, ``memory`` what the model then needs.
    """

    order: tuple[int, ...]
    layout: MemoryLayout
    plan: Plan
    planned: Mapping[Tensor, int]
    memory: MemoryUse


def place_in_better_order(model: Model, order: Sequence[int], profile: KernelProfile, options: Options) -> Placed:
    """Plan the model in its own order and in ``order``, and leave it in the one whose head is smaller.

    Its own order stays when both are equal: a smaller peak is worth nothing that the plan cannot make use of.
    """
    own = tuple(range(len(order)))
    kept = _place(model, own, profile, options)
    if tuple(order) == own:
        return kept
    model.main.reorder(order)
    moved = _place(model, tuple(order), profile, options)
    if moved.memory.arena_bytes < kept.memory.arena_bytes:
        return moved
    _undo(model, order)
    return kept


def _place(model: Model, order: tuple[int, ...], profile: KernelProfile, options: Options) -> Placed:
    layout = memory_layout(model, profile, options.pins)
    plan = solve(layout.problem, options.planner, SearchLimit(options.time_limit, options.seed))
    planned = offsets_to_write(model, layout, plan.offsets)
    return Placed(order, layout, plan, planned, memory_use(model, layout, planned, profile))


def sharing_in(placed: Placed) -> tuple[SharingUse, ...]:
    """What the plan makes of the kernels' permissions, largest saving first."""
    offsets = dict(zip(placed.layout.tensors, placed.plan.offsets, strict=False)) if placed.planned else {}
    found = []
    for operator, shares in placed.layout.shares.items():
        for share in shares:
            if share.input not in offsets or share.output not in offsets:
                continue
            first, second = offsets[share.input], offsets[share.output]
            both = min(first + share.input.nbytes, second + share.output.nbytes) - max(first, second)
            if both > 0:
                label = operator.opcode.label
                found.append(SharingUse(label, share.kind, share.input.name, share.output.name, both))
    return tuple(sorted(found, key=lambda use: -use.saved_bytes))


def arena_by_kernels(model: Model, options: Options) -> dict[str, int]:
    """The head in bytes that every kernel profile would allow, each in its own best order. The model stays as it is."""
    quick = replace(options, time_limit=min(options.time_limit, _OTHER_PROFILES_SECONDS))
    limit = SearchLimit(quick.time_limit, quick.seed)
    found = {}
    for name, profile in PROFILES.items():
        problem = schedule_problem(model.main, memory_layout(model, profile))
        order = solve_schedule(problem, options.scheduler, limit).order
        placed = place_in_better_order(model, order, profile, quick)
        _undo(model, placed.order)
        found[name] = placed.memory.arena_bytes
    return found


def _undo(model: Model, order: Sequence[int]) -> None:
    """Back to the order before ``model.main.reorder(order)``."""
    model.main.reorder(sorted(range(len(order)), key=order.__getitem__))
