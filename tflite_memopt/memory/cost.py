"""What a rewritten model really costs: ordered, planned, and counted as TFLM will."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from ..analysis.macs import model_macs
from ..ir.model import Model
from ..kernels.arena import arena_use
from ..kernels.profile import KernelProfile
from ..options import Options
from ..schedule.methods import solve as solve_schedule
from .arrange import arrange
from .figures import MemoryUse
from .layout import memory_layout
from .schedule_problem import schedule_problem
from .usage import operator_count


@dataclass(frozen=True, order=True)
class Cost:
    """What a model costs, compared field by field: bytes of the objective, head, and then what they are paid with."""

    need: int
    head: int
    macs: int
    operators: int


@dataclass(frozen=True)
class Declined:
    """A candidate that needs less, whose new operator kinds or newer TFLM do not pay.

    ``need``: bytes of the objective. ``kinds``: operator kinds that the original does without. ``since``: the day of
    the oldest TFLM that has them; None where any has. ``instructions``: estimated, by kernel library.
    """

    need: int
    kinds: tuple[str, ...]
    since: date | None
    instructions: Mapping[str, int]


_WORK = 0.1
"""The part of its limit that the search for an order may use for one estimate: many are made."""


def cost_of(model: Model, profile: KernelProfile, options: Options) -> Cost:
    """The cost under the objective of ``options``, ordered and planned."""
    return cost_in(arrange(model, profile, options).placement.memory, options)


def cost_in(memory: MemoryUse, options: Options) -> Cost:
    """The cost of what has been planned, under the objective of ``options``."""
    return Cost(needed_bytes(memory, options), memory.arena_bytes, memory.macs, memory.operators)


def estimate_of(model: Model, profile: KernelProfile, options: Options) -> Cost:
    """The cost if the plan met the peak of the best order found: a search can compare by it, the planner decides."""
    problem = schedule_problem(model.main, memory_layout(model, profile))
    peak = solve_schedule(problem, options.scheduler, options.search_limit(_WORK)).peak_bytes
    need = arena_use(model, peak, profile.requests, profile.abi).required if options.objective == "total" else peak
    return Cost(need, peak, model_macs(model), operator_count(model))


def needed_bytes(memory: MemoryUse, options: Options) -> int:
    """What the objective counts: the arena that firmware for the target must reserve, or its head alone."""
    return memory.required_for_target if options.objective == "total" else memory.arena_bytes
