"""A model as a program of parts: optimized whole, cut where the largest part is least, each part verified, counted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ...errors import ErrorKind, InfeasibleError, UnsupportedModelError, UsageError
from ...evidence.equivalence.verification import infer_shapes
from ...kernels.since import has_operators, needed_since
from ...memory.arrange import arrange
from ...memory.facts import limits_in_file
from ...memory.file import read_planned
from ...memory.work import instructions_to_compare, slowest
from ...model.io import plan_label
from ...model.io.files import Source, write_folder
from ...model.ir.change import Exactness, loosest
from ...model.ir.model import Model
from ...options import NOT_IN_PARTS, WORTH, Effort, Options
from ...report.summary import proof_of
from ...search.rewrite.stage import clean_up
from ..candidate import Cache, Progress
from ..given import read_given
from ..pipeline import Result, optimize
from ..streamed import fed_input, in_rows
from .choice import Choice, Price, Stretch, Stretches, at_most, best_path, choose, fewest
from .cutting import cut, why_whole
from .files import MANIFEST, MOST_FILES, NOT_VERIFIED, PROVED, Program, to_json
from .fronts import IMPOSSIBLE, FeedCosts, FrontFile, others_late
from .handover import hand_over
from .manifest import ProgramSource, program_of, work_of
from .space import counted_library, part_space
from .stretch import SHARE, ResultCosts, StretchCosts
from .verifying import PartInputs, boundaries_of, said_of, verify_program

MOST_PARTS = 8
"""Of ``auto``: with more, what every interpreter takes by itself weighs more than what a cut saves."""
_MOST_MEASURED: Mapping[Effort, int] = {"quick": 60, "normal": 180, "thorough": 180}
_MOST_DRAFTED: Mapping[Effort, int] = {"quick": 500, "normal": 2_000, "thorough": 20_000}
"""Prices that the search may measure, and steps of the stretches that it may draft, of ``auto`` and for each part of a
number: its limits on work."""
ORDER_WORK = 0.1
_NO_GAIN = "no cut saves one percent of what the whole needs"
_TOO_SLOW = "re-creating an interpreter for each part in every run adds more run time than --max-slowdown allows"
_WRITES_ROWS = "DYNAMIC_UPDATE_SLICE"
_ANY_WORK = 1 << 62
_ROUNDED = 1e-4
"""Added run time, as a fraction, that the search may miss: it counts in millionths of the limit, part by part."""
_GAIN = 0.01
"""The share of the whole that parts must save to be written."""


Made = TypeVar("Made")


@dataclass(frozen=True)
class ProgramResult:
    """``whole``: the model as one, verified. ``parts``: the parts' results, one for what is not worth a cut.

    ``why_whole``: why there is one part only; None where there are several. ``front``: the part before these, which
    takes rows as they come; None where there is none.
    """

    whole: Result
    parts: tuple[Result, ...]
    program: Program
    why_whole: str | None = None
    front: FrontFile | None = None

    @property
    def models(self) -> tuple[bytes, ...]:
        """The files of all parts, in order."""
        return (*(() if self.front is None else (self.front.data,)), *(part.model for part in self.parts))

    def files(self) -> dict[str, bytes]:
        """The files of the folder, by name."""
        parts = {part.file: data for part, data in zip(self.program.parts, self.models, strict=True)}
        return {**parts, MANIFEST: to_json(self.program).encode()}

    def save(self, folder: Path, force: bool = False) -> tuple[Path, ...]:
        """Write the files, whole or not at all. Raises UsageError for one that is there already, unless ``force``."""
        return write_folder(folder, self.files(), (), force)


def optimize_in_parts(
    source: Source,
    options: Options = Options(),
    most_parts: int | None = None,
    progress: Progress = lambda _: None,
    feed: int | None = None,
    image: str | None = None,
    whole: Result | None = None,
    must_fit: bool = False,
    cache: Cache | None = None,
) -> ProgramResult:
    """A model as at most ``most_parts`` models in one arena, at most 30; None: as many as pay. Raises as ``optimize``.

    No more run time is added than the options allow, making an interpreter for each part in each run included.
    ``feed``: how many rows of its image the first part takes in a call, or ``fronts.AUTO``; None: the whole image.
    ``image``: the name of the input that is fed; None: the largest.
    ``whole``: the model as one, where it is there already.
    ``must_fit``: whether the search ends where nothing meets the budget, without the least.
    ``cache``: as of ``optimize``.
    Raises UnsupportedModelError where none can, InfeasibleError where none does within the limits.
    """
    _check(options, most_parts, feed)
    cache = Cache() if cache is None else cache
    given = read_given(source, options, progress, is_cut=True)
    data, shaped = given.data, infer_shapes(given.data, options, progress).data
    fed = None if feed is None else fed_input(given.model, image)
    whole = optimize(data, options, progress) if whole is None else whole
    whole = replace(whole, report=replace(whole.report, as_it_came=given.came))
    origin = ProgramSource(given.name, data, _whole_bytes(whole), shaped=shaped)
    model = _to_cut(shaped, options, progress, fed)
    reason = why_whole(model)
    if most_parts is not None and reason is not None and most_parts > 1:
        raise UnsupportedModelError(f"a model in parts: {reason}", ErrorKind.FORM)
    # Cleaned up, or laid along rows, a model may take more time than as it came, or less.
    original = instructions_to_compare(read_planned(shaped), options.profile)
    if feed is not None and fed is not None:
        fronts = FeedCosts(model, options, progress, original=original, cache=cache, rows=feed, image=fed)
        fronts.most = options.budget if must_fit else None
        return _fed(origin, model, fronts, whole, most_parts, must_fit)
    costs = StretchCosts(model, options, progress, original=original, cache=cache)
    worth = _whole_bytes(whole) * (1 - _GAIN)
    program = replace(_program(origin, [whole], options), verified=_said(whole))
    as_one = ProgramResult(whole, (whole,), program, reason or _why_one(costs, worth))

    def made(costs: StretchCosts, choice: Choice) -> tuple[ProgramResult, float]:
        if not choice.cuts or choice.need > worth:
            return as_one, 0.0
        parts = _optimized_parts(costs, choice, 0)
        program = _program(origin, parts, options)
        made = ProgramResult(whole, parts, program)
        return (as_one, 0.0) if program.arena > worth else (made, _added(made, original))

    if reason is not None:
        return as_one
    # As it is: no search finds all that one for the whole does.
    drafted, as_it_is = None, costs_of_result(whole, options, original)
    if as_it_is is not None:
        with suppress(InfeasibleError):  # what crosses a cut finds no place
            drafted = _within_the_limit(as_it_is, most_parts, partial(made, as_it_is), False, worth)
    drafted = None if drafted is as_one else drafted
    if drafted is not None and options.search.meets_budget(max(drafted.program.arena_bytes.values())):
        return _verified(data, drafted, options, progress)
    most = min(worth, inf if drafted is None else drafted.program.arena)
    found = _within_the_limit(costs, most_parts, partial(made, costs), must_fit, most)
    if drafted is not None and (found is None or drafted.program.arena < found.program.arena):
        found = drafted
    return as_one if found in (None, as_one) else _verified(data, found, options, progress)


def draft_of(whole: Result, options: Options) -> tuple[int, float] | None:
    """Return what a result needs in parts as it is, in bytes, and the added run time; None where that saves little.

    Nothing is searched but orders and plans.
    """
    before = whole.report.before.instructions
    costs = costs_of_result(whole, options, before)
    if costs is None:
        return None
    library = counted_library(options.profile)

    def made(choice: Choice) -> tuple[tuple[int, float] | None, float]:
        if not choice.cuts:
            return None, 0.0
        parts = [costs.found[each, limit] for each, limit in zip(choice.stretches, choice.limits, strict=True)]
        spaces = [part_space(each.model, library, each.placement.offsets) for each in parts]
        arena, moves = hand_over(spaces)
        models, moved = [each.model for each in parts], sum(each.nbytes for each in moves)
        slowdown = slowest(before, work_of(models, [1] * len(models), moved, options.profile))
        return (arena, slowdown), slowdown

    try:
        found = _within_the_limit(costs, None, made, False, _whole_bytes(whole) * (1 - WORTH))
    except InfeasibleError:  # what crosses a cut finds no place
        return None
    return found if found is not None and found[0] <= _whole_bytes(whole) * (1 - WORTH) else None


def costs_of_result(whole: Result, options: Options, original: Mapping[str, int]) -> ResultCosts | None:
    """Return the prices of a result in parts as it is; None where it cannot be cut. ``original`` as StretchCosts'."""
    model = read_planned(whole.model)
    if why_whole(model) is not None:
        return None
    steps = tuple(step.bytes for step in limits_in_file(model, options.profile)[1] if not step.subgraph)
    plan_label.detach(model)
    plain = replace(options, io="keep", effort="quick", cascade=False, rewrite=False)
    return ResultCosts(model, plain, lambda _: None, original=original, steps=steps)


def _why_one(costs: StretchCosts, worth: float) -> str:
    """Return the reason for one part: no cut saves as much, or those that do are beyond the limit on run time."""
    least, anyhow = (need_along(costs, costs.estimate, costs.least_work, work) for work in (costs.most_work, _ANY_WORK))
    is_slow = anyhow is not None and anyhow <= worth and (least is None or least > worth)
    return _TOO_SLOW if is_slow else _NO_GAIN


def need_along(
    costs: StretchCosts, need_of: Callable[[Stretch], int], work_of: Callable[[Stretch], int], most_work: int
) -> int | None:
    """Return the largest need on the best path with a cut, or a front; None where none keeps to the limit."""
    whole = None if isinstance(costs, FeedCosts) else (0, costs.positions[-1])

    def priced(stretch: Stretch) -> list[tuple[Price, int]]:
        need = IMPOSSIBLE if stretch == whole else need_of(stretch)
        return [] if need >= IMPOSSIBLE else [(Price(need, work_of(stretch)), 0)]

    path = best_path(priced, costs.positions, MOST_PARTS, most_work)
    return None if path is None else path.need


def _fed(
    origin: ProgramSource, model: Model, costs: FeedCosts, whole: Result, most_parts: int | None, must_fit: bool
) -> ProgramResult:
    """The model with a front on rows, and what comes after it in parts. Raises as ``optimize_in_parts``."""
    options, reason = costs.options, why_whole(model) or costs.why_none()
    if reason is not None:
        raise UnsupportedModelError(f"--feed: {reason}", ErrorKind.FORM)

    def made(choice: Choice) -> tuple[ProgramResult, float]:
        front = costs.chosen(choice.stretches[0], choice.limits[0])
        parts = _optimized_parts(costs, choice, 1)
        program = _program(origin, parts, options, front)
        result = ProgramResult(whole, parts, program, None, front)
        return result, _added(result, costs.counted_from)

    found = _within_the_limit(costs, most_parts, made, must_fit)
    if found is None:
        raise InfeasibleError(
            f"--feed: no front keeps the added run time within {options.max_slowdown:.0%}: raise "
            "--max-slowdown, or give a number of rows"
        )
    return _verified(origin.data, found, options, costs.progress)


def _added(made: ProgramResult, original: Mapping[str, int]) -> float:
    """Return the run time that a program adds, as a share of what the limit counts from."""
    own = made.whole.report.before.instructions
    return slowest(original, {name: round(own[name] * (1 + added)) for name, added in made.program.slowdown.items()})


def _optimized_parts(costs: StretchCosts, choice: Choice, first: int) -> tuple[Result, ...]:
    """The parts of a choice from number ``first`` on."""
    pieces = cut(costs.model, choice.cuts)
    boundaries = list(zip(pieces, boundaries_of(costs.model, pieces, costs.options, costs.progress), strict=True))
    return tuple(_optimized(costs, choice, at, *boundaries[at]) for at in range(first, len(pieces)))


def _verified(data: bytes, result: ProgramResult, options: Options, progress: Progress) -> ProgramResult:
    """The result, and on what all parts together were verified."""
    if not options.verify:
        return result
    feed = result.program.feed
    said = verify_program(data, result.models, options, progress, _exactness(result.parts), feed)
    return replace(result, program=replace(result.program, verified=said))


def _check(options: Options, most_parts: int | None, feed: int | None) -> None:
    if most_parts is not None and not 1 <= most_parts <= MOST_FILES:
        raise UsageError(f"{most_parts} parts: give a number from 1 to {MOST_FILES}")
    for field, (flag, why) in NOT_IN_PARTS.items():
        if getattr(options, field):
            raise UsageError(f"{flag} does not work with --parts: {why}", ErrorKind.EXCLUDED)
    if options.objective != "total" and feed is None:
        raise UsageError("--parts minimizes the whole arena: omit --objective head", ErrorKind.EXCLUDED)
    if feed is not None and not has_operators((_WRITES_ROWS,), options.build):
        raise UnsupportedModelError(
            f"--feed does not work with --tflm {options.build.name}: the first part writes its rows by {_WRITES_ROWS}, "
            f"which TFLM has since {needed_since((_WRITES_ROWS,))}",
            ErrorKind.NO_KERNEL,
        )
    if feed is not None and options.runner is not None:
        raise UsageError("a runner does not work with --feed: it runs whole models", ErrorKind.EXCLUDED)


def _to_cut(data: bytes, options: Options, progress: Progress, fed: int | None) -> Model:
    """Return the model cleaned up, with the interface that was asked for, in the order with the smallest peak.

    ``fed``: the position of the input that is fed; sequences lie along rows then.
    """
    if options.io == "int8":
        data = optimize(data, replace(options, cascade=False, rewrite=False, budget=None), progress).model
    model = read_planned(data)
    if fed is not None:
        model = in_rows(model, options)
    elif options.rewrite:
        clean_up(model, options.profile, options.keep_quantized)
    plan_label.detach(model)
    model.main.reorder(arrange(model, options.profile, options.search, ORDER_WORK).schedule.order)
    if fed is not None:
        others_late(model, fed)
    return model


def _within_the_limit(
    costs: StretchCosts,
    most_parts: int | None,
    made: Callable[[Choice], tuple[Made, float]],
    must_fit: bool,
    most: float = inf,
) -> Made | None:
    """Return what is made of the best choice that keeps to the limit on run time, and needs ``most`` bytes at most.

    None without one. ``made``: also returns the added run time, as a fraction.

    The search assumes that a tensor is moved once between two parts. The program tells whether it is moved twice, for
    want of room: then what it adds beyond the limit is taken from the limit of the next search.
    """
    most_work, limit = costs.most_work, costs.options.max_slowdown
    while (choice := _chosen(costs, most_parts, most_work, must_fit, most)) is not None:
        result, slowdown = made(choice)
        over = slowdown - limit
        if over <= _ROUNDED:
            return result
        most_work = choice.work - (ceil(SHARE * over / limit) if limit else SHARE)
    return None


def _chosen(costs: StretchCosts, most_parts: int | None, work: int, must_fit: bool, most: float) -> Choice | None:
    options = costs.options
    most_work = _MOST_MEASURED[options.effort], _MOST_DRAFTED[options.effort]
    stretches = Stretches(costs.positions, costs.bound, costs.draft, costs.measure, costs.more, *most_work)
    if most_parts is not None:
        return at_most(stretches, most_parts, work, most)
    if options.budget is None:
        return fewest(stretches, MOST_PARTS, work, most)
    # What fits is enough; where nothing does, the least need is the answer.
    fitting = choose(stretches, MOST_PARTS, work, enough=options.budget)
    if fitting is None and must_fit:
        raise InfeasibleError("no cut meets the budget, as far as cuts were tried and others can be estimated")
    return choose(stretches, MOST_PARTS, work, most=most) if fitting is None else fitting


def saying(progress: Progress, what: str) -> Progress:
    """Return progress that says what it is of."""
    return lambda said: progress(f"{what}: {said}")


def _optimized(costs: StretchCosts, choice: Choice, at: int, piece: Model, boundary: PartInputs) -> Result:
    """A part of the chosen split, verified over the values that cross the cut."""
    options = costs.options
    stretch, limit = choice.stretches[at], choice.limits[at]
    found = costs.searched(stretch, limit)
    wanted = replace(costs.options_for(stretch, limit), io="keep", replay=str(found.decision), samples=options.samples)
    say = saying(costs.progress, f"part {at}")
    if boundary.samples is None or not options.verify:
        return optimize(boundary.data, wanted, say)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "boundary.npz"
        names, columns = [tensor.name for tensor in piece.main.inputs], zip(*boundary.samples, strict=True)
        arrays: dict[str, Any] = {name: np.stack(column) for name, column in zip(names, columns, strict=True)}
        np.savez(path, **arrays)
        return optimize(boundary.data, replace(wanted, inputs=path), say)


def _said(whole: Result) -> str:
    """On what the model as one was verified."""
    equal = {name: verdict.samples for name, verdict in whole.report.equivalence.items() if verdict.equal}
    if not equal:
        return NOT_VERIFIED
    proof, exactness = proof_of(whole.report), _exactness([whole])
    is_proved = proof is not None and proof.is_proved and exactness != "approximates"
    return said_of(min(equal.values()), equal, exactness) + (PROVED if is_proved else "")


def _exactness(parts: Sequence[Result]) -> Exactness:
    """Return the exactness of the rewriting."""
    return loosest(use.exactness for part in parts for use in part.report.rewrites)


def _whole_bytes(whole: Result) -> int:
    after = whole.report.after
    return after.required_bytes.get("table", after.required_for_target)


def _program(
    origin: ProgramSource, parts: Sequence[Result], options: Options, front: FrontFile | None = None
) -> Program:
    """The manifest of a program; ``front``: the part before the ``parts``, which is called for some rows at a time."""
    files = [(part.model, part.report.before.operators) for part in parts]
    if front is not None:
        files.insert(0, (front.data, front.operators))
        origin = replace(origin, feed=front.feed)
    return program_of(origin, files, options.target, options.profile)
