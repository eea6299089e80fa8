"""What a rewritten model really costs: ordered, planned, and counted as TFLM will."""

from __future__ import annotations

from dataclasses import replace

from .budget import Budget
from .ir.model import Model
from .kernels.profile import KernelProfile
from .options import Options
from .placing import place_in_better_order
from .problems import memory_layout, schedule_problem
from .report.model import MemoryUse
from .rewrite.search import Cost
from .schedule.methods import solve as solve_schedule

_SECONDS = 1.0
"""Time for the order, and again for the plan, of one candidate of a search."""


def cost_of(model: Model, profile: KernelProfile, options: Options) -> Cost:
    """The cost under the objective of ``options``, by a short search for the order and the plan.

    The model may be left in another order.
    """
    quick = replace(options, time_limit=min(options.time_limit, _SECONDS))
    problem = schedule_problem(model.main, memory_layout(model, profile))
    order = solve_schedule(problem, options.scheduler, Budget(quick.time_limit, quick.seed)).order
    memory = place_in_better_order(model, order, profile, quick).memory
    return Cost(needed_bytes(memory, options), memory.arena_bytes, memory.macs, memory.operators)


def needed_bytes(memory: MemoryUse, options: Options) -> int:
    """What the objective counts: the arena that 32-bit firmware must reserve, or its head alone."""
    return memory.required_bytes["32"] if options.objective == "total" else memory.arena_bytes
