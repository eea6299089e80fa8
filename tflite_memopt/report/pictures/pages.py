"""The pages of the commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...equivalence.verdict import Verdict
from ...memory.figures import ArenaMap, MemoryUse, TailPart
from ..model import Analysis, Comparison, DeviceUse, Report, Summary
from ..options_used import changed_options
from ..summary import registered_by
from ..words import (
    FUSION_COLUMNS,
    change_in_percent,
    fusion_rows,
    in_words,
    run_time_in_short,
    short_name,
)
from .appearance import PAGE
from .charts import arena_charts, comparison_charts
from .page import Column, Lines, Page, PageTable, Picture, Side, SizeBar, html_of, made_for_firmware

_ROOM = 1.08
"""Over the highest bar, so that the line of the head and its words are inside."""
_TEXTS = {
    "time": (
        "Memory over time",
        "One bar per operator, in execution order. The head is the memory that all operators share; TFLM's own "
        "structures lie at the end of the arena.",
    ),
    "arena": (
        "The arena",
        "One rectangle per tensor: its width is the lifetime in steps, its height the size in bytes. Overlapping "
        "rectangles share memory: a view has the values of its input, and an output overwrites an input that is "
        "no longer needed.",
    ),
    "macs": ("Computation", "Multiply-accumulates per operator, in execution order."),
}


def report_page(report: Report) -> bytes:
    """Return the page of ``optimize``."""
    before, after = report.arena["before"], report.arena["after"]
    pictures = _pairs({"before": before, "after": after})
    tables = (_figures({"before": report.before, "after": report.after}, report.file_bytes), *_verification(report))
    firmware = Lines("For your firmware", tuple(_firmware(report)))
    lists = (firmware, *_lists(report.summary), Lines("Before you flash it", report.warnings))
    title = f"{report.model or 'model'}: before and after"
    tables = (*tables, *_tail({"before": before, "after": after}), _operators(after))
    numbers, bars = _numbers(report), _bars(report)
    return html_of(
        Page(title, report.summary.headline, lists, pictures, tables, _made_for(report), tuple(numbers), tuple(bars))
    )


def analysis_page(analysis: Analysis) -> bytes:
    """Return the page of ``analyze``."""
    arena, sizes = analysis.arena, {"now": analysis.file_bytes}
    title = f"{analysis.model or 'model'}: memory"
    tables = (_figures({"now": analysis.memory}, sizes), *_tail({"now": arena}), _operators(arena))
    pictures = _pairs({"now": arena})
    facts = (*made_for_firmware(analysis.target, analysis.kernels), ("SHA-256", analysis.sha256))
    need = (("bytes of RAM to reserve", f"{arena.required:,}"),)
    bars = (_bar("now", arena), *_chip(analysis.device))
    text = analysis.summary.headline
    return html_of(Page(title, text, _lists(analysis.summary), pictures, tables, facts, need, bars))


def _made_for(report: Report) -> tuple[tuple[str, str], ...]:
    """Return the target and the options of a result; no date, so that equal runs make equal pages."""
    shown = {name: value for name, value in changed_options(report.options).items() if name not in _SAID}
    options = ", ".join(f"{name}={value}" for name, value in shown.items()) or "the default ones"
    budget = "none" if report.budget is None else f"{in_words(report.budget)} of {_OBJECTIVES[report.objective]}"
    of_result = ("budget", budget), ("options", options), ("SHA-256 of the result", report.sha256["after"])
    return (*made_for_firmware(report.target, report.kernels), *of_result)


def _numbers(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the answer: the sizes to reserve before and after, the saving, and the cost."""
    before, after = report.arena["before"].required, report.arena["after"].required
    yield "bytes of RAM before", f"{before:,}"
    yield "bytes of RAM now", f"{after:,}"
    yield "of RAM", change_in_percent(before, after) or "no change"
    yield "run time (estimated)", run_time_in_short(report.before.instructions, report.after.instructions)
    if (proof := report.proofs.get("result")) is not None:
        yield "for all inputs", "proved" if proof.is_proved else "NOT proved"


def _firmware(report: Report) -> Iterator[str]:
    """Yield the size to reserve and the operators to register."""
    table = report.after.required_bytes.get("table")
    with_table = "" if table is None else f" ({table:,} with the planner.h of codegen)"
    yield f"reserve {report.after.required_for_target:,} bytes for the arena{with_table}"
    yield registered_by(report)


def _bars(report: Report) -> Iterator[SizeBar]:
    yield from (_bar(title, report.arena[side]) for side, title in (("before", "before"), ("after", "now")))
    if report.budget is None or report.objective == "head":
        yield from _chip(report.device)
    else:
        yield SizeBar("your budget", report.budget)


def _bar(title: str, arena: ArenaMap) -> SizeBar:
    tail = sum(part.bytes for part in arena.tail)
    return SizeBar(title, arena.required, arena.required - tail, tail)


def _chip(device: DeviceUse | None) -> Iterator[SizeBar]:
    if device is not None:
        yield SizeBar(f"RAM of {device.name}", device.ram_bytes)


def _tail(arenas: Mapping[str, ArenaMap]) -> Iterator[PageTable]:
    """Return TFLM's own structures by part."""
    sizes = {side: {part.name: part for part in arena.tail} for side, arena in arenas.items()}
    names = dict.fromkeys(name for parts in reversed(sizes.values()) for name in parts)
    heads = [(f"bytes {side}", f"number {side}") if len(arenas) > 1 else ("bytes", "number") for side in arenas]
    columns = (Column("part"), *(Column(each, True) for pair in heads for each in pair))
    rows = [(name, *(cell for parts in sizes.values() for cell in _part(parts.get(name)))) for name in names]
    text = "Kernel buffers persist between runs; they hold, for example, the multipliers of all channels."
    yield PageTable("TFLM's own structures (the tail)", columns, rows, text)


def _part(part: TailPart | None) -> tuple[str, str]:
    return ("-", "-") if part is None else (f"{part.bytes:,}", f"{part.count:,}")


_OBJECTIVES = {"total": "RAM", "head": "the head"}
_SAID = ("target", "kernels", "budget")


def comparison_page(comparison: Comparison) -> bytes:
    """Return the page of ``compare``."""
    texts = {
        "schedulers": ("Orders of operators", "The peak of the order that each method returns."),
        "planners": ("Places of tensors", f"The arena of each method, in the order of {comparison.planned_order}."),
        "objects": ("Shared objects", "For runtimes that cannot place tensors at offsets: bytes of all objects."),
    }
    ends = " A bar is the result of a method; the line on it is the lower bound."
    pictures = [
        Picture(texts[name][0], texts[name][1] + ends, (Side(name, "", chart),))
        for name, chart in comparison_charts(comparison, PAGE).items()
    ]
    columns = (
        Column("method"),
        Column("bytes", True),
        Column("lower bound", True),
        Column("proved"),
        Column("s", True),
    )
    rows = [
        (use.method, f"{use.bytes:,}", f"{use.lower_bound:,}", "optimal" if use.optimal else "no", f"{use.seconds:.3f}")
        for uses in (comparison.schedulers, comparison.planners, comparison.shared_objects)
        for use in uses
    ]
    tables = [PageTable("In figures", columns, rows)] if rows else []
    if comparison.fusion:
        text = f"Of msf-CNN, on the first {comparison.fusion_layers} convolutions and pools, as its paper counts."
        fusion = tuple(Column(name, name in ("bytes", "MACs", "times")) for name in FUSION_COLUMNS)
        tables.append(PageTable("Fused blocks", fusion, fusion_rows(comparison), text))
    title = f"{comparison.model or 'model'}: methods side by side"
    headline = f"{comparison.operators} operators, {comparison.kernels} kernels"
    return html_of(Page(title, headline, (), pictures, tables))


def _lists(summary: Summary) -> tuple[Lines, ...]:
    advice = [f"{each.option}: {each.text}" for each in summary.advice]
    return (
        Lines("Done", summary.changes),
        Lines("Limits", summary.limits),
        Lines("Next steps", advice),
    )


def _pairs(arenas: Mapping[str, ArenaMap]) -> list[Picture]:
    """Each kind of chart, of every model, on one scale of bytes."""
    top = round(_ROOM * max(arena.required for arena in arenas.values()))
    charts = {side: arena_charts(arena, top, PAGE) for side, arena in arenas.items()}
    return [
        Picture(
            title,
            text,
            [Side(f"{kind}-{side}", side if len(arenas) > 1 else "", charts[side][kind]) for side in arenas],
        )
        for kind, (title, text) in _TEXTS.items()
    ]


def _figures(sides: Mapping[str, MemoryUse], file_bytes: Mapping[str, int]) -> PageTable:
    columns = (Column("bytes"), *(Column(side, True) for side in sides))
    rows: list[tuple[str, list[int | str | None]]] = [
        ("arena to reserve, target", [use.required_bytes.get("target") for use in sides.values()]),
        ("the same, plan as a table", [use.required_bytes.get("table") for use in sides.values()]),
        ("arena to reserve, 32-bit", [use.required_bytes["32"] for use in sides.values()]),
        ("arena to reserve, 64-bit", [use.required_bytes["64"] for use in sides.values()]),
        ("head: tensors and scratch", [use.arena_bytes for use in sides.values()]),
        ("largest working set", [use.peak_bytes for use in sides.values()]),
        *((f"TFLM measured {part} (64-bit)", [use.tflm.get(part) for use in sides.values()]) for part in _PARTS),
        ("operators", [use.operators for use in sides.values()]),
        ("multiply-accumulates", [use.macs for use in sides.values()]),
        ("file", [file_bytes[side] for side in sides]),
    ]
    for name in next(iter(sides.values())).instructions:
        rows.append((f"instructions, estimated, {name}", [use.instructions[name] for use in sides.values()]))
    known = [(label, *(_figure(value) for value in values)) for label, values in rows if any(values)]
    return PageTable("In figures", columns, known)


_PARTS = ("head", "tail", "total")


def _figure(value: int | str | None) -> str:
    return f"{value:,}" if isinstance(value, int) else value or "-"


def _verification(report: Report) -> Iterator[PageTable]:
    columns = tuple(map(Column, ("runtime", "verdict", "samples", "largest difference", "reason")))
    rows = [(name, *_verdict(verdict)) for name, verdict in report.equivalence.items()]
    said = (
        "TFLM itself ran the plan." if report.basis.plan_executed else f"The plan was not run: {report.basis.reason}."
    )
    if not rows:
        said = "The result was not verified (--no-verify)."
    yield PageTable("Does it compute the same?", columns, rows, said)


def _verdict(verdict: Verdict) -> tuple[str, ...]:
    word = {True: "equal", False: "DIFFERENT", None: "no verdict"}[verdict.equal]
    gap = "-" if verdict.equal is None else f"{verdict.max_abs_diff:g}"
    exactness = "" if verdict.exactness == "exact" or not verdict.equal else f" ({verdict.exactness})"
    return word + exactness, str(verdict.samples), gap, verdict.reason or ""


def _operators(arena: ArenaMap) -> PageTable:
    columns = (
        Column("", True),
        Column("operator"),
        Column("output"),
        Column("bytes in use", True),
        Column("scratch", True),
        Column("multiply-accumulates", True),
    )
    rows = [
        (
            str(number),
            step.operator,
            short_name(step.output),
            f"{step.working_set:,}",
            f"{step.scratch_bytes:,}",
            f"{step.macs:,}",
        )
        for number, step in enumerate(arena.steps)
    ]
    return PageTable("All operators", columns, rows, folded=True)
