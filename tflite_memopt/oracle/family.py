"""Plans of a whole family: few candidates are planned, the others follow where their bound is met.

A candidate is *settled* when the relative places of another one's plan are a plan for it too, whose head is the lower
bound: no plan of any order has a smaller one. All others are planned one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..graph.alignment import ARENA_ALIGNMENT
from ..kernels.arena import arena_beside_head
from ..options import Options
from .bound import FamilyNeed, least_need
from .description import GraphSketch, Sizes, model_of
from .facts import FactTable, distinct, facts_of
from .planned import PlannedNeed
from .replay import heads_under_one_plan

PlanOne = Callable[[GraphSketch], PlannedNeed]


def family_need(sketch: GraphSketch, table: FactTable, options: Options, plan_one: PlanOne) -> FamilyNeed:
    """The planned need of every candidate; ``plan_one`` answers for a graph without arrays.

    Raises UsageError when the arrays of the family have different lengths.
    """
    varying = sketch.varying()
    if sketch.candidates == 1 and not varying:
        return _with_arrays([plan_one(sketch)])
    _, kind = distinct(varying)
    _, numbers = np.unique(kind, return_index=True)
    found = _of_different(sketch.candidates_at(numbers), table, options, plan_one)
    return FamilyNeed(found.required[kind], found.head[kind], found.macs[kind])


def _of_different(family: GraphSketch, table: FactTable, options: Options, plan_one: PlanOne) -> FamilyNeed:
    least = least_need(family, table)
    head = np.full(family.candidates, -1, np.int64)
    left = np.arange(family.candidates)
    while left.size and not table.profile.libraries:
        found = heads_under_one_plan(family.candidates_at(left), table, options)
        is_settled = found == least.head[left]
        head[left[is_settled]] = found[is_settled]
        if not is_settled.any():
            break
        left = left[~is_settled]
    required = _required(family, table, head)
    macs = least.macs.copy()
    for number in np.flatnonzero(head < 0):
        one = plan_one(family.candidate(int(number)))
        required[number], head[number], macs[number] = one.required, one.head, one.macs
    return FamilyNeed(required, head, macs)


def _required(family: GraphSketch, table: FactTable, head: Sizes) -> Sizes:
    """The arena that firmware must reserve with these heads: TFLM's allocator is replayed once for all that are alike.

    Alike are candidates whose operators keep the same, and whose tensors have as many scales.
    """
    columns = [each.scales for each in family.tensors.values() if isinstance(each.scales, np.ndarray)]
    for operator in family.operators:
        facts, kind = facts_of(family, operator, table)
        if kind is not None:
            numbers: dict[object, int] = {}
            columns.append(np.asarray([numbers.setdefault((f.kept, f.requests), len(numbers)) for f in facts])[kind])
    alike: Sequence[int] = [0] * family.candidates if not columns else distinct(columns)[1].tolist()
    profile, required = table.profile, np.zeros_like(head)
    for group in dict.fromkeys(alike):
        members = np.flatnonzero(np.asarray(alike) == group)
        model = model_of(family.candidate(int(members[0])))
        beside = arena_beside_head(model, profile.requests, profile.abi)
        needed = np.maximum(beside.before_plan, head[members] + beside.tail)
        required[members] = -(-needed // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
    return required


def _with_arrays(needs: Sequence[PlannedNeed]) -> FamilyNeed:
    figures = ([getattr(each, name) for each in needs] for name in ("required", "head", "macs"))
    return FamilyNeed(*(np.asarray(each, np.int64) for each in figures))
