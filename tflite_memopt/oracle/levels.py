"""What a model needs, to one of several degrees of effort; each says what its figure guarantees."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..cascade.search import cascade
from ..errors import UsageError
from ..io import offline_plan
from ..io.files import load
from ..ir.copying import copy_model
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import estimate_of
from ..memory.figures import LibraryNeed, MemoryUse
from ..memory.layout import memory_layout
from ..memory.libraries import fitted, needs_by_library
from ..memory.reading import read_planned
from ..memory.usage import memory_use
from ..options import Options, fallbacks
from ..rewrite.sequences_along_h import sequences_along_h
from .bound import FamilyNeed, least_need
from .description import GraphSketch, model_of, sketch_from, sketch_of
from .facts import FactTable
from .family import family_need
from .planned import PlannedNeed, need_in, planned_need
from .stripes import striped_need

if TYPE_CHECKING:
    from typing_extensions import Self

RamEffort = Literal["stock", "bound", "order", "plan", "stripes", "search"]
RAM_EFFORTS: tuple[RamEffort, ...] = get_args(RamEffort)
GUARANTEES: Mapping[str, str] = {
    "stock": "exact: what TFLM reserves for the model as it stands",
    "bound": "lower bound: no order and no plan of these operators needs less; stripes and rewrites may",
    "order": "estimate: the largest working set of the best order that was found; gaps in a plan come on top",
    "plan": "exact: what optimize gives with rewrite=False and cascade=False",
    "stripes": "upper bound: in stripes that are quickly found a plan of so many bytes exists; a search may find less",
    "search": "exact: what optimize gives with the options of SEARCH",
    "optimized": "exact: what optimize gives",
}
PLAN: Mapping[str, Any] = {"rewrite": False, "cascade": False, "verify": False}
SEARCH: Mapping[str, Any] = {
    "rewrite": False,
    "verify": False,
    "effort": "quick",
    "loops": False,
    "halos": ("recompute",),
}
"""Stripes one after the other, whose rows at the borders are computed twice; loops take far longer to search."""
Candidate = bytes | str | os.PathLike[str] | Model | GraphSketch | Mapping[str, Any]
"""A .tflite as bytes or path, a model, or a graph without weights, as a sketch or as a dictionary."""
CANDIDATES = (bytes, str, os.PathLike, Model, GraphSketch, Mapping)


class Ram(int):
    """Bytes of the arena to reserve, a number like any other, that also says how it was found.

    ``effort`` and what it ``guarantees``; ``head``: the bytes of it that tensors share; ``macs``: multiply-accumulates.
    """

    effort: str
    head: int
    macs: int

    def __new__(cls, required: int, effort: str = "stock", head: int = 0, macs: int = 0) -> Self:
        """A figure of one effort; all in bytes, but ``macs``."""
        made = super().__new__(cls, required)
        made.effort, made.head, made.macs = effort, head, macs
        return made

    @property
    def guarantees(self) -> str:
        """What is certain of the figure."""
        return GUARANTEES[self.effort]


@dataclass(frozen=True)
class RamOracle:
    """Answers for one target. Keep it for a whole search: what it has learnt of an operator serves the next candidate.

    ``options``: those of ``optimize`` that choose target, kernels and objective. Raises as :class:`Options`.
    """

    options: Options
    table: FactTable

    @classmethod
    def on(cls, target: str | None = None, kernels: str | None = None) -> RamOracle:
        """The oracle for a core or chip. Raises UsageError for an unknown name."""
        options = Options(target=target, kernels=kernels, verify=False)
        return cls(options, FactTable(options.profile))

    def ram(self, candidate: Candidate, effort: RamEffort = "plan") -> Ram:
        """What a candidate needs. Raises UsageError for an unknown effort, and as ``optimize`` for a bad model."""
        if effort not in RAM_EFFORTS:
            raise UsageError(f"unknown effort '{effort}'; choose one of {', '.join(RAM_EFFORTS)}")
        if effort == "bound":
            least = self.bounds(candidate)
            return Ram(int(least.required[0]), effort, int(least.head[0]), int(least.macs[0]))
        model, profile = _model(candidate), self.options.profile
        if effort == "order":
            cost = estimate_of(model, profile, self.options)
            return Ram(cost.need, effort, cost.head, cost.macs)
        if effort == "stock":
            found = need_in(_as_it_stands(model, profile))
        elif effort == "plan":
            found = _planned(model, replace(self.options, **PLAN), _remembering(profile))
        elif effort == "stripes":
            found = _striped(model, replace(self.options, **PLAN), _remembering(profile))
        else:
            found = need_in(_optimized(model, replace(self.options, **SEARCH), profile))
        return Ram(found.required, effort, found.head, found.macs)

    def bounds(self, candidate: Candidate) -> FamilyNeed:
        """The lower bounds of a candidate or, of a family whose dimensions are arrays, of all its candidates."""
        if isinstance(candidate, GraphSketch):
            return least_need(candidate, self.table)
        if isinstance(candidate, Mapping):
            return least_need(sketch_from(candidate), self.table)
        return least_need(sketch_of(_model(candidate)), self.table)

    def plans(self, family: GraphSketch | Mapping[str, Any]) -> FamilyNeed:
        """What every candidate of a family needs in the best order and plan.

        The smallest head that any order and any plan has, where the plan of another candidate shows it at once; as
        ``ram(candidate, "plan")`` for all others. Raises UsageError when the family's arrays have different lengths.
        """
        sketch = sketch_from(family) if isinstance(family, Mapping) else family
        options = replace(self.options, **PLAN)
        profile = _remembering(self.options.profile)
        return family_need(sketch, self.table, options, lambda one: _planned(model_of(one), options, profile))


def _model(candidate: Candidate) -> Model:
    """A model of its own, which a search may put into another order."""
    if isinstance(candidate, Model):
        return copy_model(candidate)
    if isinstance(candidate, GraphSketch):
        return model_of(candidate)
    if isinstance(candidate, Mapping):
        return model_of(sketch_from(candidate))
    return read_planned(*load(candidate))


def _as_it_stands(model: Model, profile: KernelProfile) -> MemoryUse:
    return memory_use(model, memory_layout(model, profile), offline_plan.decode(model) or {}, profile)


def _remembering(profile: KernelProfile) -> KernelProfile:
    """The profile, which asks its rules once for each operator: for a graph that no stage changes."""
    requests, relations = cache(profile.requests), cache(profile.relations)
    return replace(
        profile, requests=requests, relations=relations, libraries=tuple(map(_remembering, profile.libraries))
    )


def _planned(model: Model, options: Options, profile: KernelProfile) -> PlannedNeed:
    found = None if offline_plan.decode(model) else planned_need(model, profile, options)
    return need_in(_optimized(model, options, profile)) if found is None else found


def _striped(model: Model, options: Options, profile: KernelProfile) -> PlannedNeed:
    unstriped = _planned(model, options, profile)
    return striped_need(model, profile, options, unstriped).need


def _optimized(model: Model, options: Options, profile: KernelProfile) -> MemoryUse:
    """What ``optimize`` promises without rewrites: the first attempt after which no library needs more than before."""
    before = needs_by_library(model, offline_plan.decode(model) or {}, profile)
    offline_plan.detach(model)
    found = None
    for _, attempt in fallbacks(options):
        found = _attempt(model, attempt, before, profile)
        if found is not None:
            break
    assert found is not None, "an attempt without stripes always has an answer"
    return found


def _attempt(
    model: Model, options: Options, before: Mapping[str, LibraryNeed], profile: KernelProfile
) -> MemoryUse | None:
    """None where some library would need more, and there is something left to leave out."""
    striped = cascade(model, profile, options, lambda _: None, other_form=sequences_along_h).model
    arrangement = arrange(striped, profile, options)
    found = fitted(striped, arrangement, before, profile, options)
    if found is not None:
        return found.placement.memory
    return None if options.cascade else arrangement.placement.memory
