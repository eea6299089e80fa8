"""Explore the Pareto front of RAM against run time: runs of ``optimize`` under several limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ..errors import ErrorKind, UnsupportedModelError, UsageError
from ..kernels.as_it_came import as_it_came, with_plan
from ..memory.figures import MemoryUse
from ..memory.file import label_of_others, read_planned, without_foreign_plan
from ..memory.work import slowest
from ..model.io.files import Source, load
from ..model.io.reader import read_model
from ..options import DEFAULT_LIMIT, Options
from ..report.answer import Answer, answer_of
from ..report.exploration import chosen_of, flags_of, front_of
from ..report.model import Exploration, FrontPoint
from ..report.warnings import of_former_plan, of_mends
from .attempts import LIMITS
from .candidate import Cache
from .parts.run import optimize_in_parts
from .pipeline import check_values, optimize

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
    most_parts: int | None = 1,
    hops: tuple[int, ...] = (),
) -> Explored:
    """Return the Pareto front of RAM against run time of a .tflite given as bytes or as a path.

    ``most_parts``: the largest number of parts to try as well; 1: none, None: as many as pay. UsageError with the head
    as the objective.

    ``hops``: rows of the input, of which a sliding window takes so many in each call.

    Every point is a result of :func:`tflite_memopt.run.pipeline.optimize` under a limit; none is proved.
    ``options.budget`` and ``options.objective`` choose one of them. Raises a MemoptError for a bad model.
    """
    data, name = load(source)
    plain, foreign = without_foreign_plan(data, name)
    model = read_planned(plain, name)  # errors name the file
    came = with_plan(as_it_came(model, options.profile, options.build), foreign)
    if most_parts != 1 and options.objective != "total":
        raise UsageError("--parts minimizes the whole arena: omit --objective head", ErrorKind.EXCLUDED)
    run = _Exploring(data, progress)
    run.search(replace(options, budget=None, verify=False))
    for limit in PARTS_LIMITS if most_parts != 1 else ():
        run.cut(replace(options, budget=None, verify=False, max_slowdown=limit), most_parts)
    assert run.before is not None
    refused = run.slide(replace(options, verify=False), hops)
    warnings = (*of_former_plan(label_of_others(model, options.profile)), *of_mends(run.mends), *refused)
    points = front_of(list(run.found), run.before, options.objective)
    exploration = Exploration(
        model=name,
        target=options.profile.target,
        kernels=options.profile.name,
        effort=options.effort,
        before=run.before,
        points=points,
        searches=run.searches,
        choice=chosen_of(points, options.objective, options.budget),
        warnings=warnings,
        as_it_came=came,
    )
    return Explored(exploration, tuple(run.found[point] for point in points))


@dataclass
class _Exploring:
    """``found``: the first options with the result of each point. ``before``: the original model.

    ``mends``: run time, as a share, that is added to it for what kernels compute wrongly otherwise.
    """

    data: bytes
    progress: Progress
    cache: Cache = field(default_factory=Cache)
    found: dict[FrontPoint, Options] = field(default_factory=dict)
    before: FrontPoint | None = None
    searches: int = 0
    mends: float = 0.0

    def search(self, options: Options) -> None:
        """Order and plan alone, rewritten, and in stripes under limits that may change the answer."""
        plain = replace(options, cascade=False, every_byte=False)  # as the flags of these points have it
        if options.rewrite:
            self._made(replace(plain, rewrite=False))
        self._made(plain)
        most: float | None = LIMITS[-1] if options.cascade else None
        while most is not None:
            limited = replace(options, max_slowdown=most)
            made = [self._made(each) for each in (limited, replace(limited, every_byte=False))]
            self.searches += 1
            # A limit that the answers keep by themselves is left out: they would be the same.
            slowest = max(point.slowdown for point in made)
            if slowest <= DEFAULT_LIMIT < most:  # the default has these answers, and is what a person gives least for
                for each in (options, replace(options, every_byte=False)):
                    self._made(replace(each, max_slowdown=DEFAULT_LIMIT))
            most = max((each for each in LIMITS if each < min(most, slowest)), default=None)

    def slide(self, options: Options, hops: tuple[int, ...]) -> Iterator[str]:
        """Search hops of a window; yields why one cannot be."""
        for hop in hops:
            try:
                self._made(replace(options, slide=str(hop), every_byte=False))
            except UnsupportedModelError as error:
                yield str(error).replace("--slide", f"--slide {hop}", 1)
            self.searches += 1

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
            most=max(made.program.arena_bytes.values()),
        )
        self.found.setdefault(point, options)

    def _made(self, options: Options) -> FrontPoint:
        limits = flags_of(options)
        cache = self.cache if options.slide is None else None  # it is of one model
        result = optimize(self.data, options, lambda said: self.progress(f"{limits}: {said}"), cache)
        report = result.report
        self.mends = max(self.mends, report.slowdown_of_mends)
        check_values(read_model(result.model), options)
        was = answer_of(report.libraries["before"])
        self.before = _point_of(was, report.before, report.before, report.file_bytes["before"], "")
        point = _point_of(report.answer, report.after, report.before, len(result.model), limits)
        stripes = tuple(use.stripes for use in report.rewrites if use.stripes is not None)
        point = replace(point, stripes=stripes, hop=None if report.slide is None else report.slide.hop)
        self.found.setdefault(point, options)
        return point


def _point_of(answer: Answer, memory: MemoryUse, before: MemoryUse, file_bytes: int, limits: str) -> FrontPoint:
    return FrontPoint(
        total=answer.reserve,
        head=memory.arena_bytes,
        slowdown=round(slowest(before.instructions, memory.instructions), 4) + 0.0,  # not -0.0
        macs=memory.macs,
        operators=memory.operators,
        file_bytes=file_bytes,
        limits=limits,
        stripes=(),
        table=answer.table,
        most=next(iter(answer.most.values()), None),
    )
