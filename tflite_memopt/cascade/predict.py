"""Regions of a model in stripes: what each would need, and how chosen ones are applied."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..errors import InfeasibleError, UsageError
from ..ir.copying import copy_model
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.cost import Footprint, footprint
from ..memory.layout import memory_layout
from ..memory.schedule_problem import schedule_problem
from ..options import HALOS
from ..schedule.memory_graph import memory_graph
from ..schedule.problem import ScheduleProblem
from .excerpt import excerpt
from .lower import lower
from .receptive_field import RowByRow, row_by_row
from .region import Region, region_of
from .select import Limits, Option
from .stripes import Edges, Halo, even_cuts, stripes_of

_LONGEST = 16
"""Operators in a region: deeper ones recompute or keep more than they save."""
COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
"""Numbers of stripes to look at first; a search may go on to those between."""
MODES: tuple[tuple[Halo, Edges], ...] = (
    ("recompute", "trim"),
    ("recompute", "pad"),
    ("rolling", "trim"),
    ("rolling", "pad"),
)
Modes = Sequence[tuple[Halo, Edges]]
_PATIENCE: Mapping[Halo, int] = {"recompute": 1, "rolling": 3}
"""How many larger numbers of stripes in a row may bring nothing before the rest is skipped.

Two or three rolling stripes need as much as the whole: what is kept and joined is alive beside what it comes from.
"""


@dataclass(frozen=True)
class Cascade:
    """Steps ``first`` to ``end``, half-open, of a model in ``count`` stripes."""

    first: int
    end: int
    count: int
    halo: Halo
    edges: Edges


@dataclass(frozen=True)
class Striping:
    """``needs[s]``: bytes alive at step s of a model as it stands; ``options``: what cascades would need instead."""

    needs: tuple[int, ...]
    options: dict[Cascade, Option]


def modes_of(halos: Collection[str]) -> Modes:
    """The modes with one of these halos. Raises UsageError for an unknown one, or for none."""
    if not halos or not set(halos) <= set(HALOS):
        raise UsageError(f"halos are {', '.join(halos) or 'none'}; choose one or both of {', '.join(HALOS)}")
    return tuple(mode for mode in MODES if mode[0] in halos)


def apply_cascades(model: Model, cascades: Sequence[Cascade]) -> None:
    """Run these regions of the main graph in stripes. Positions are those before any is applied.

    Raises InfeasibleError when a cascade does not fit the model.
    """
    graph = model.main
    operators = list(graph.operators)
    for each in cascades:
        region = region_of(graph, operators[each.first : each.end])
        if isinstance(region, str):
            raise InfeasibleError(f"steps {each.first} to {each.end} are no region: {region}")
        height = region.exit.shape[1]
        if each.count > height:
            raise InfeasibleError(f"steps {each.first} to {each.end}: {height} rows are no {each.count} stripes")
        stripes = stripes_of(region, even_cuts(height, each.count), each.halo, each.edges)
        if isinstance(stripes, str):
            raise InfeasibleError(f"steps {each.first} to {each.end} in {each.count} stripes: {stripes}")
        lower(model, graph, region, stripes)


def striping_of(
    model: Model,
    profile: KernelProfile,
    floor: int,
    limits: Limits,
    deadline: float,
    pinned: Collection[str] = (),
    modes: Modes = MODES,
) -> Striping:
    """Look at all regions with a step that needs more than ``floor`` bytes, short ones first.

    A tensor with a ``pinned`` name stays whole: no region has it inside.
    """
    problem = schedule_problem(model.main, memory_layout(model, profile))
    needs = memory_graph(problem).needs_along(range(len(problem.steps)))
    found: dict[Cascade, Option] = {}
    for first, end in _intervals(model, needs, floor, deadline):
        if any(operator.outputs[0].name in pinned for operator in model.main.operators[first : end - 1]):
            continue
        if time.monotonic() > deadline:
            break
        found |= _options_for(model, profile, first, end, _across(problem, first, end), limits, modes)
    return Striping(tuple(needs), found)


def _intervals(model: Model, needs: Sequence[int], floor: int, deadline: float) -> list[tuple[int, int]]:
    """Intervals of steps that are a region and have a step that needs more than ``floor``; short ones first."""
    operators = model.main.operators
    can_be_cut = [isinstance(row_by_row(operator), RowByRow) for operator in operators]
    found = []
    for first in range(len(operators)):
        if time.monotonic() > deadline:
            break
        for end in range(first + 1, min(first + _LONGEST, len(operators)) + 1):
            if not can_be_cut[end - 1]:
                break
            if max(needs[first:end]) <= floor:
                continue
            region = region_of(model.main, operators[first:end])
            if isinstance(region, Region) and region.exit.shape[1] > 1:
                found.append((first, end))
    return sorted(found, key=lambda pair: (pair[1] - pair[0], -max(needs[pair[0] : pair[1]])))


def _across(problem: ScheduleProblem, first: int, end: int) -> int:
    """Bytes that are alive during all the steps and that none of them touches."""
    born = dict.fromkeys(problem.inputs, -1)
    dies = dict.fromkeys(problem.inputs, -1)
    touched: set[int] = set()
    for at, step in enumerate(problem.steps):
        born.update(dict.fromkeys(step.outputs, at))
        dies.update(dict.fromkeys((*step.inputs, *step.outputs), at))
        if first <= at < end:
            touched.update(step.inputs, step.outputs)
    dies.update(dict.fromkeys(problem.outputs, len(problem.steps)))
    return sum(problem.sizes[t] for t, at in born.items() if at < first and dies[t] >= end and t not in touched)


def _options_for(
    model: Model, profile: KernelProfile, first: int, end: int, across: int, limits: Limits, modes: Modes
) -> dict[Cascade, Option]:
    part = excerpt(model, first, end)
    before = footprint(part, profile)
    height = part.main.operators[-1].outputs[0].shape[1]
    found = {}
    for halo, edges in modes:
        best, waited = before.peak, 0
        for count in (count for count in COUNTS if count <= height):
            after = _striped(part, Cascade(0, end - first, count, halo, edges), profile)
            if after is None or waited > _PATIENCE[halo] or after.macs - before.macs > limits.macs:
                break
            waited = 0 if after.peak < best else waited + 1
            if after.peak < best:
                best = after.peak
                found[Cascade(first, end, count, halo, edges)] = _option(first, end, across, before, after)
    return found


def _option(first: int, end: int, across: int, before: Footprint, after: Footprint) -> Option:
    return Option(
        first,
        end,
        across + after.peak,
        after.tail - before.tail,
        after.temporaries - before.temporaries,
        after.macs - before.macs,
        after.operators - before.operators,
    )


def _striped(part: Model, cascade: Cascade, profile: KernelProfile) -> Footprint | None:
    """What an excerpt needs as one cascade; None where it cannot be done."""
    copied = copy_model(part)
    try:
        apply_cascades(copied, [cascade])
    except InfeasibleError:
        return None
    return footprint(copied, profile)
