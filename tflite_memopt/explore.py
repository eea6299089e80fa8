"""The run of ``explore``, top to bottom: read, rewrite, search under a grid of limits, place, keep the front."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from .cascade.front import FrontLimit, FrontSearch, StripeRecipe, grid_of
from .cascade.search import cascade
from .equivalence.proof import infer_shapes
from .io import offline_plan, plan_label
from .io.files import load
from .io.reader import read_model
from .io.writer import write_model
from .ir.change import OUT_OF_TIME, Changed
from .ir.copying import copy_model
from .ir.model import Model
from .kernels.profile import KernelProfile
from .memory.arrange import arrange
from .memory.every_library import placement_for_every_library
from .memory.figures import MemoryUse
from .memory.label import attach_plan
from .memory.layout import memory_layout
from .memory.libraries import LibraryNeed
from .memory.reading import read_planned
from .options import OBJECTIVES, Options
from .report.build import ModelFacts, facts_of
from .report.exploration import chosen_of, flags_of, front_of
from .report.model import Exploration, FrontPoint
from .rewrite.stage import rewrite

Progress = Callable[[str], None]
Source = bytes | str | os.PathLike[str]


@dataclass(frozen=True)
class Way:
    """What makes one point: the options, and the stripes that were found, None for a model without.

    Its ``rewrite`` and ``cascade`` are stages of :func:`tflite_memopt.pipeline.optimize`.
    """

    options: Options
    recipe: StripeRecipe | None

    def rewrite(self, model: Model, profile: KernelProfile, options: Options, progress: Progress) -> Changed:
        """As it was done for the point, unless the options no longer permit it."""
        return rewrite(model, profile, replace(self.options, rewrite=options.rewrite), progress)

    def cascade(self, model: Model, profile: KernelProfile, options: Options, progress: Progress) -> Changed:
        """The stripes of the point; where the options no longer permit them, what a search finds."""
        if self.recipe is None or not options.rewrite or not options.cascade:
            return Changed(model, (), ())
        if self.recipe.has_loops and not options.loops:
            return cascade(model, profile, options, progress)
        return self.recipe.applied(model)


@dataclass(frozen=True)
class Explored:
    """The front, and what makes each of its points."""

    exploration: Exploration
    ways: tuple[Way, ...]


def explore(
    source: Source, options: Options = Options(max_extra_macs=1.0), progress: Progress = lambda _: None
) -> Explored:
    """The Pareto front of RAM against computation and size of a .tflite given as bytes or as a path.

    Every point is planned as :func:`tflite_memopt.pipeline.optimize` plans it, and none is proved. ``options.budget``
    and ``options.objective`` choose one of them; both objectives are searched. Raises a MemoptError for a bad model.
    """
    profile = options.profile
    progress("reading")
    data, name = load(source)
    model = read_planned(data)
    memory_layout(model, profile, options.pins)  # a wrong pin is refused before any search
    facts = facts_of(model, name, len(data), profile)
    shaped = infer_shapes(data, options, progress)

    run = _Exploring(shaped.data, profile, None if shaped.wrong else facts.libraries, progress)
    found: list[tuple[FrontPoint, Way]] = []
    for objective in OBJECTIVES:
        found += run.points(replace(options, objective=objective, budget=None))
    points = front_of([point for point, _ in found])
    ways = dict(reversed(found))
    warnings = (f"the search: {OUT_OF_TIME}",) if run.has_struck else ()
    return Explored(_said(facts, points, options, warnings), tuple(ways[point] for point in points))


@dataclass
class _Exploring:
    """``before``: what each library needs for the original, None where it runs wrongly."""

    data: bytes
    profile: KernelProfile
    before: dict[str, LibraryNeed] | None
    progress: Progress
    has_struck: bool = False

    def points(self, options: Options) -> Iterator[tuple[FrontPoint, Way]]:
        """The points of one objective: order and plan alone, rewritten, and the best under each limit on stripes."""
        if options.rewrite:
            plain = replace(options, rewrite=False, cascade=False)
            yield from self._point(self._rewritten(plain), Way(plain, None))
        model = self._rewritten(options)
        yield from self._point(model, Way(replace(options, cascade=False), None))
        search = FrontSearch(model, self.profile, options)
        for limit, recipe in search.run(self.progress):
            yield from self._point(recipe.applied(model).model, Way(_within(options, limit), recipe))
        self.has_struck = self.has_struck or search.has_struck

    def _rewritten(self, options: Options) -> Model:
        model = rewrite(read_planned(self.data), self.profile, options, self.progress).model
        offline_plan.detach(model)
        plan_label.detach(model)
        return model

    def _point(self, striped: Model, way: Way) -> Iterator[tuple[FrontPoint, Way]]:
        """The model as it would be written; none where a library would need more than before."""
        model = copy_model(striped)
        arrangement = arrange(model, self.profile, way.options)
        placement = (
            arrangement.placement
            if self.before is None
            else placement_for_every_library(model, arrangement, self.before, self.profile, way.options)
        )
        if placement is None:
            return
        model.main.reorder(placement.order)
        attach_plan(model, self.profile, placement, read_model(self.data))
        yield _point_of(placement.memory, len(write_model(model)), way), way


def _within(options: Options, limit: FrontLimit) -> Options:
    return replace(options, max_extra_macs=limit.extra_macs, loops=limit.loops)


def _point_of(memory: MemoryUse, file_bytes: int, way: Way) -> FrontPoint:
    stripes = () if way.recipe is None else tuple(use.rule.removeprefix("cascade in ") for use in way.recipe.uses)
    return FrontPoint(
        total=memory.required_for_target,
        head=memory.arena_bytes,
        macs=memory.macs,
        operators=memory.operators,
        file_bytes=file_bytes,
        limits=flags_of(way.options),
        stripes=stripes,
    )


def _said(
    facts: ModelFacts, points: tuple[FrontPoint, ...], options: Options, warnings: tuple[str, ...]
) -> Exploration:
    memory = facts.memory
    return Exploration(
        model=facts.name,
        target=options.profile.target,
        kernels=options.profile.name,
        effort=options.effort,
        before=FrontPoint(
            memory.required_for_target, memory.arena_bytes, memory.macs, memory.operators, facts.file_bytes, "", ()
        ),
        points=points,
        searches=len(OBJECTIVES) * len(grid_of(options)),
        choice=chosen_of(points, options.objective, options.budget),
        warnings=warnings,
    )
