"""The exploration: the points of the front, the one that a budget picks, and the table for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..kernels.as_it_came import said_of_file
from ..options import Objective, Options
from .answer import Planner
from .document import Cell, Document, Lines, Picture, TextTable, Tile
from .documents import made_for
from .model import ChosenPoint, Exploration, FrontPoint, Report
from .pictures.front import extra_macs, front_plot
from .summary import limits_of
from .words import change_in_percent, counted, file_name, in_words, percent

_PICTURE = (
    "A circle is a way to run the model; a hollow one is the original, omitted if it needs far more. The line is the "
    "least RAM at each run time; points above it are better in another respect."
)


def flags_of(options: Options) -> str:
    """Return the limits under which a point was made, as flags of ``optimize``."""
    if options.slide is not None:
        return f"--slide {options.slide}"
    if not options.cascade:
        return f"--changes {'rewrites' if options.rewrite else 'order'}"
    changes = "--changes all " if options.every_byte else ""
    return f"{changes}--max-slowdown {100 * options.max_slowdown:g}"


def front_of(points: Sequence[FrontPoint], before: FrontPoint, objective: Objective) -> tuple[FrontPoint, ...]:
    """Return the points that need less than the original and that no other point beats in both RAM and run time.

    The smallest need first. If none needs less, the smallest one. Then those of a sliding window, by hop: each does
    something else, and may need more.
    """

    def order(point: FrontPoint) -> tuple[float, ...]:
        return need_of(point, objective), _run_time(point), point.operators, point.file_bytes

    kept: list[FrontPoint] = []
    # Of equal points the last one: it has the least limit that was searched.
    for point in sorted((each for each in reversed(points) if each.hop is None), key=order):
        is_less = need_of(point, objective) < need_of(before, objective)
        if not kept or (is_less and _run_time(point) < _run_time(kept[-1])):
            kept.append(point)
    return (*kept, *sorted((each for each in points if each.hop is not None), key=lambda each: each.hop or 0))


def _run_time(point: FrontPoint) -> float:
    """In tenths of a percent: nobody tells less apart."""
    return round(point.slowdown, 3)


def need_of(point: FrontPoint, objective: Objective, with_any_library: bool = False) -> int:
    """Return the bytes that the objective counts, those with the library that needs the most where firmware has any."""
    if objective == "head":
        return point.head
    return point.most if with_any_library and point.most is not None else point.total


def chosen_of(points: Sequence[FrontPoint], objective: Objective, budget: int | None) -> ChosenPoint:
    """Return the cheapest point within the budget; the smallest where none is, or where there is no budget.

    A point that fits with codegen's planner alone is taken where no other one fits.
    """
    needs = [need_of(point, objective) for point in points]
    most = [need_of(each, objective, True) for each in points]
    within = [at for at, need in enumerate(most) if budget is not None and need <= budget]
    planner: Planner = "tflm"
    if budget is not None and not within:
        tables = [each.table if objective == "total" else None for each in points]
        within = [at for at, table in enumerate(tables) if table is not None and table <= budget]
        planner = "table" if within else planner

    def price(at: int) -> tuple[float, ...]:
        point = points[at]
        return _run_time(point), point.operators, point.file_bytes, needs[at]

    at = min(within, key=price) if within else min(range(len(points)), key=lambda each: (needs[each], price(each)))
    return ChosenPoint(objective, budget, at, None if budget is None else bool(within), (), (), planner)


def with_reasons(exploration: Exploration, report: Report) -> Exploration:
    """Add the limits of the chosen point, and advice, from the report on it."""
    choice = exploration.choice
    limits = limits_of(report.after, report.bounds, choice.objective == "head")
    return replace(exploration, choice=replace(choice, limits=limits, advice=report.summary.advice))


def exploration_document(exploration: Exploration, is_chosen: bool) -> Document:
    """Return the document of ``explore``, one row per point; ``is_chosen``: whether one of them was asked for."""
    before, choice = exploration.before, exploration.choice
    least = min((point.total for point in exploration.points), default=0)
    strong = choice.point + 1 if is_chosen else None
    first = "now" if exploration.as_it_came.has_size else "mended"
    columns = (">", ">RAM to reserve", ">head", ">run time", ">MACs", ">operators", ">file", "options")
    numbered = enumerate((before, *exploration.points))
    rows = [(str(number or first), *_cells(point, before)) for number, point in numbered]
    mends = said_of_file(exploration.as_it_came, mended=True)
    was = f"was {before.total:,} ({change_in_percent(before.total, least)})"
    return Document(
        title=f"{file_name(exploration.model)}: RAM against its price",
        headline=headline_of(exploration),
        is_bad=choice.fits is False,
        lists=(
            Lines("mended", "The file", [f"{mends}; the results are mended"] if mends else []),
            Lines("choice", "Selected point", tuple(choice_lines(exploration)) if is_chosen else ()),
            Lines("warning", "Warnings", exploration.warnings),
        ),
        tables=(TextTable(file_name(exploration.model), columns, rows, is_open=True, strong=strong),),
        facts=made_for(exploration.target, exploration.kernels),
        tiles=(Tile("RAM, at least", f"{least:,} bytes", was),),
        picture=lambda: Picture("RAM against run time", _PICTURE, [front_plot(exploration)]),
    )


def headline_of(exploration: Exploration) -> str:
    """Return one line: how many points, and the RAM from the first to now."""
    points, before = exploration.points, exploration.before
    least, head = min(point.total for point in points), min(point.head for point in points)
    now = "now" if exploration.as_it_came.has_size else "without other changes"
    budget = "" if exploration.choice.budget is None else f", budget {in_words(exploration.choice.budget)}"
    return (
        f"{counted(len(points), 'way')} to run the model on {exploration.target or 'any target'} "
        f"({exploration.kernels} kernels{budget}): RAM from {least:,} bytes, head from {head:,}; {now} "
        f"{before.total:,} and {before.head:,}"
    )


def _cells(point: FrontPoint, before: FrontPoint) -> tuple[str | Cell, ...]:
    """Return the figures of a point: RAM, head, run time, MACs, operators, file, options."""
    price = percent(point.slowdown), extra_macs(point, before), f"{point.operators:,}", f"{point.file_bytes:,}"
    return f"{point.total:,}", f"{point.head:,}", *price, Cell(point.limits, more="; ".join(point.stripes))


def choice_lines(exploration: Exploration) -> Iterable[str]:
    """Yield the selected point and the reason; if it does not fit, its limits and advice."""
    choice = exploration.choice
    point, number = exploration.points[choice.point], choice.point + 1
    need, what = need_of(point, choice.objective, True), "RAM" if choice.objective == "total" else "head"
    if choice.planner == "table" and point.table is not None:
        need, what = point.table, "RAM, with codegen's planner"
    if choice.budget is None:
        yield f"point {number} needs the least {what}: {need:,} bytes"
        return
    size = in_words(choice.budget)
    if choice.fits:
        yield (
            f"point {number} fits {size} with {need:,} bytes of {what}: of those that fit, it has the least run time, "
            "then the fewest operators, then the smallest file"
        )
        return
    over = need - choice.budget
    yield f"NO point fits {size}: point {number} is the nearest, {over:,} bytes of {what} too many"
    yield from (f"  what limits it: {line}" for line in choice.limits)
    yield from (f"  what would help: {each.option}: {each.text}" for each in choice.advice)
