"""Offsets for a model in a given order, and the choice between two orders by what their plans really need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .budget import Budget
from .ir.model import Model, Tensor
from .kernels.profile import KernelProfile
from .measure import memory_use
from .options import Options
from .plan.methods import solve
from .plan.problem import Plan
from .problems import MemoryLayout, memory_layout, offsets_to_write
from .report.model import MemoryUse


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
    model.main.reorder(sorted(own, key=order.__getitem__))
    return kept


def _place(model: Model, order: tuple[int, ...], profile: KernelProfile, options: Options) -> Placed:
    layout = memory_layout(model, profile, options.pins)
    plan = solve(layout.problem, options.planner, Budget(options.time_limit, options.seed))
    planned = offsets_to_write(model, layout, plan.offsets)
    return Placed(order, layout, plan, planned, memory_use(model, layout, planned, profile))
