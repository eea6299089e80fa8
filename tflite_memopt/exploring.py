"""The run of ``explore``: what ``optimize`` makes under limits from wide to narrow, and the front of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .errors import InfeasibleError, UsageError
from .io.files import Source, load
from .ir.change import OUT_OF_TIME
from .memory.figures import MemoryUse
from .memory.reading import read_planned
from .memory.spread import prices_for, spread_use
from .memory.work import slowest
from .options import Options
from .pipeline import optimize
from .program.run import optimize_in_parts
from .report.exploration import chosen_of, flags_of, front_of, within
from .report.model import Exploration, FrontPoint, Goal
from .transform import Cache

LIMITS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Limits on added run time, as fractions."""
PARTS_LIMITS = (0.3, 0.1)
"""Of them, those under which the model is cut into parts: each takes a search of its own."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Explored:
    """The front, and the options with which ``optimize`` writes each of its points."""

    exploration: Exploration
    options: tuple[Options, ...]


def explore(
    source: Source,
    options: Options = Options(),
    progress: Progress = lambda _: None,
    memories: Mapping[str, int] | None = None,
    prices: Mapping[str, int] | None = None,
    most_parts: int | None = 1,
) -> Explored:
    """The Pareto front of RAM against run time of a .tflite given as bytes or as a path.

    ``memories``: bytes by name, the fastest first. The front is then that of bytes through all but the first, by the
    points that fit; UsageError with a budget, InfeasibleError when none fits. ``prices``: as for ``analyze``.
    ``most_parts``: the largest number of parts to try as well; 1: none, None: as many as pay. UsageError with memories,
    or with the head as the objective.

    Every point is what :func:`tflite_memopt.pipeline.optimize` makes under a limit, and none is proved.
    ``options.budget`` and ``options.objective`` choose one of them. Raises a MemoptError for a bad model.
    """
    data, name = load(source)
    read_planned(data, name)  # what is wrong with the file is said with its name
    options = options.started()
    if memories and options.budget is not None:
        raise UsageError("--memory and --budget exclude each other: the sizes of the memories are the budget")
    if most_parts != 1 and (memories or options.objective != "total"):
        raise UsageError("--parts makes the whole arena small: leave --memory and --objective head out")
    if memories:
        prices_for(memories, prices or {})  # a wrong price is refused before any search
    run = _Exploring(data, progress, memories or {}, prices or {})
    run.search(replace(options, budget=None, verify=False))
    for limit in PARTS_LIMITS if most_parts != 1 else ():
        run.cut(within(replace(options, budget=None, verify=False), limit), most_parts)
    warnings = (f"the search: {OUT_OF_TIME}",) if run.has_struck else ()
    assert run.before is not None
    before = _point_of(run.before, run.before, len(data), "")
    goal: Goal = "slow" if memories else options.objective
    if memories:
        before = replace(before, slow_bytes=run.slow_bytes(data, options))
    fitting = [point for point in run.found if point.slow_bytes is not None or not memories]
    if not fitting:
        raise InfeasibleError(f"no way to run the model fits {', '.join(memories or ())}")
    points = front_of(fitting, before, goal)
    exploration = Exploration(
        model=name,
        target=options.profile.target,
        kernels=options.profile.name,
        effort=options.effort,
        before=before,
        points=points,
        searches=run.searches,
        choice=chosen_of(points, goal, options.budget),
        warnings=warnings,
    )
    return Explored(exploration, tuple(run.found[point] for point in points))


@dataclass
class _Exploring:
    """``found``: the options that each point was first made with. ``before``: the model as it came."""

    data: bytes
    progress: Progress
    memories: Mapping[str, int]
    prices: Mapping[str, int]
    cache: Cache = field(default_factory=dict)
    found: dict[FrontPoint, Options] = field(default_factory=dict)
    before: MemoryUse | None = None
    searches: int = 0
    has_struck: bool = False

    def search(self, options: Options) -> None:
        """Order and plan alone, rewritten, and in stripes under limits that may change the answer."""
        if options.rewrite:
            self._made(replace(options, rewrite=False, cascade=False))
        self._made(replace(options, cascade=False))
        most: float | None = LIMITS[-1] if options.cascade else None
        while most is not None:
            point = self._made(within(options, most))
            self.searches += 1
            # A limit that the answer keeps by itself is left out: the answer would be the same.
            most = max((each for each in LIMITS if each < min(most, point.slowdown)), default=None)

    def cut(self, options: Options, most_parts: int | None) -> None:
        """The model as a program, where cuts pay."""
        limits = flags_of(options)
        made = optimize_in_parts(self.data, options, most_parts, lambda said: self.progress(f"{limits}: {said}"))
        self.searches += 1
        if len(made.parts) == 1:
            return
        each = [part.report.after for part in made.parts]
        point = FrontPoint(
            total=made.program.arena,
            head=max(use.arena_bytes for use in each),
            slowdown=round(max(made.program.slowdown.values()), 4) + 0.0,  # not -0.0
            macs=sum(use.macs for use in each),
            operators=sum(use.operators for use in each),
            file_bytes=sum(len(part.model) for part in made.parts),
            limits=f"--parts {len(each)} {limits}",
            stripes=tuple(
                use.stripes for part in made.parts for use in part.report.rewrites if use.stripes is not None
            ),
            parts=len(each),
        )
        self.found.setdefault(point, options)

    def _made(self, options: Options) -> FrontPoint:
        limits = flags_of(options)
        result = optimize(self.data, options, lambda said: self.progress(f"{limits}: {said}"), self.cache)
        report = result.report
        self.before = report.before
        self.has_struck |= any(refusal.cause == "out_of_time" for refusal in report.refused)
        point = _point_of(report.after, report.before, len(result.model), limits)
        point = replace(point, stripes=tuple(use.stripes for use in report.rewrites if use.stripes is not None))
        if self.memories:
            point = replace(point, slow_bytes=self.slow_bytes(result.model, options))
        self.found.setdefault(point, options)
        return point

    def slow_bytes(self, data: bytes, options: Options) -> int | None:
        """Bytes through all memories but the first; None for a model that does not fit."""
        try:
            return spread_use(read_planned(data), options.profile, self.memories, prices=self.prices).slow_bytes
        except (InfeasibleError, UsageError):  # tensors do not fit, or TFLM's own structures
            return None


def _point_of(memory: MemoryUse, before: MemoryUse, file_bytes: int, limits: str) -> FrontPoint:
    return FrontPoint(
        total=memory.required_for_target,
        head=memory.arena_bytes,
        slowdown=round(slowest(before.instructions, memory.instructions), 4) + 0.0,  # not -0.0
        macs=memory.macs,
        operators=memory.operators,
        file_bytes=file_bytes,
        limits=limits,
        stripes=(),
    )
