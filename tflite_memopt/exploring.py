"""The run of ``explore``: what ``optimize`` makes under limits from wide to narrow, and the front of that."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from .io.files import load
from .ir.change import OUT_OF_TIME
from .memory.figures import MemoryUse
from .memory.reading import read_planned
from .options import OBJECTIVES, Options
from .pipeline import optimize
from .report.exploration import chosen_of, flags_of, front_of
from .report.model import Exploration, FrontPoint
from .shaping import Answers

EXTRA_MACS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Limits on the MACs that stripes add, as fractions of the model's; those of a search's own rounds are among them."""
_STRIPES = "cascade in "
_LOOP = " loop"
Progress = Callable[[str], None]
Source = bytes | str | os.PathLike[str]


@dataclass(frozen=True)
class Explored:
    """The front, and the options with which ``optimize`` writes each of its points."""

    exploration: Exploration
    options: tuple[Options, ...]


def explore(
    source: Source, options: Options = Options(max_extra_macs=1.0), progress: Progress = lambda _: None
) -> Explored:
    """The Pareto front of RAM against computation and size of a .tflite given as bytes or as a path.

    Every point is what :func:`tflite_memopt.pipeline.optimize` makes under a limit, and none is proved.
    ``options.budget`` and ``options.objective`` choose one of them; both objectives are searched. Raises a MemoptError
    for a bad model.
    """
    data, name = load(source)
    read_planned(data, name)  # what is wrong with the file is said with its name
    options = options.started()
    run = _Exploring(data, progress)
    for objective in OBJECTIVES:
        run.search(replace(options, objective=objective, budget=None, verify=False))
    points = front_of(list(run.found))
    warnings = (f"the search: {OUT_OF_TIME}",) if run.has_struck else ()
    assert run.before is not None
    exploration = Exploration(
        model=name,
        target=options.profile.target,
        kernels=options.profile.name,
        effort=options.effort,
        before=_point_of(run.before, len(data), "", ()),
        points=points,
        searches=run.searches,
        choice=chosen_of(points, options.objective, options.budget),
        warnings=warnings,
    )
    return Explored(exploration, tuple(run.found[point] for point in points))


@dataclass
class _Exploring:
    """``found``: the options that each point was first made with. ``before``: the model as it came."""

    data: bytes
    progress: Progress
    known: Answers = field(default_factory=Answers)
    found: dict[FrontPoint, Options] = field(default_factory=dict)
    before: MemoryUse | None = None
    searches: int = 0
    has_struck: bool = False

    def search(self, options: Options) -> None:
        """One objective: order and plan alone, rewritten, and in stripes under limits that may change the answer."""
        if options.rewrite:
            self._made(replace(options, rewrite=False, cascade=False))
        rewritten = self._made(replace(options, cascade=False))
        if not options.cascade:
            return
        with_loops = list(self._downwards(options, rewritten.macs)) if options.loops else []
        if not with_loops or any(_LOOP in said for point in with_loops for said in point.stripes):
            list(self._downwards(replace(options, loops=False), rewritten.macs))

    def _downwards(self, options: Options, macs: int) -> Iterator[FrontPoint]:
        """From the widest limit down. One that the answer of a wider limit keeps by itself is left out.

        ``macs``: the model's, of which limits are fractions.
        """
        most: float | None = options.max_extra_macs
        while most is not None:
            point = self._made(replace(options, max_extra_macs=most))
            self.searches += 1
            yield point
            used = (point.macs - macs) / max(1, macs)
            most = max((each for each in EXTRA_MACS if each < min(most, used)), default=None)

    def _made(self, options: Options) -> FrontPoint:
        limits = flags_of(options)
        result = optimize(self.data, options, lambda said: self.progress(f"{limits}: {said}"), known=self.known)
        report = result.report
        self.before = report.before
        self.has_struck |= any(refusal.reason == OUT_OF_TIME for refusal in report.refused)
        stripes = (use.rule for use in report.rewrites if use.rule.startswith(_STRIPES))
        point = _point_of(
            report.after, len(result.model), limits, tuple(rule.removeprefix(_STRIPES) for rule in stripes)
        )
        self.found.setdefault(point, options)
        return point


def _point_of(memory: MemoryUse, file_bytes: int, limits: str, stripes: tuple[str, ...]) -> FrontPoint:
    return FrontPoint(
        total=memory.required_for_target,
        head=memory.arena_bytes,
        macs=memory.macs,
        operators=memory.operators,
        file_bytes=file_bytes,
        limits=limits,
        stripes=stripes,
    )
