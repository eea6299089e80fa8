"""The pages of ``optimize`` and ``analyze``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from ...evidence.equivalence.verdict import Verdict
from ...memory.figures import ArenaMap, MemoryUse, TailPart
from ...model.ir.change import RewriteUse
from ...options import changed_options
from ..answer import Answer, DeviceUse
from ..console import interface_lines, memory_rows
from ..model import Advice, Analysis, Report
from ..summary import (
    advice_of,
    flash_in_words,
    price_of,
    proof_of,
    registered_by,
    said_of_fit,
    shares_of,
    to_reserve,
    verified_in_words,
    ways_of,
    wrong_in_words,
)
from ..words import change_in_percent, file_name, in_words, run_time_in_short, short_name
from .arena import arena_plots
from .page import Cell, Lines, Page, PageTable, SizeBar, Tile, firmware_of, folded, html_of
from .plot import Plot, svg_of

_TEXT = (
    "A rectangle per tensor: its width is its lifetime, its height its size in bytes. Tensors that lie over each "
    "other share memory."
)


def report_page(
    report: Report, output: str = "the result", calls: Sequence[str] = (), commands: Sequence[str] = ()
) -> bytes:
    """Return the page of ``optimize``.

    ``output`` names the file to flash. ``calls`` of the resolver register its operators, ``commands`` write
    the report's ways.
    """
    arenas = dict(report.arena)
    sides = {"before": report.before, "after": report.after}
    summary = report.summary
    lists = (
        _ways(report, commands),
        _firmware(report, output, calls),
        Lines("Before you flash it", (*interface_lines(report), *map(folded, report.warnings))),
    )
    return html_of(
        Page(
            title=f"{file_name(report.model)} on TensorFlow Lite Micro",
            headline=summary.headline,
            is_bad=_is_bad(report.answer),
            lists=lists,
            heading="The arena",
            text=f"{_TEXT} Before and after have the same colors.",
            plots=report_plots(report),
            tables=(
                *_verification(report),
                _figures(sides, report.file_bytes),
                *_tail(arenas),
                _operators(arenas["after"]),
                _rules(report.rewrites),
            ),
            facts=_made_for(report),
            tiles=tuple(_tiles(report)),
            bars=tuple(_bars(report)),
            below=(Lines("Changes", (*summary.changes, price_of(report))), *_limits(summary.limits, advice_of(report))),
        )
    )


def report_plots(report: Report) -> list[Plot]:
    """Return the arena before and after, and the budget."""
    is_total = report.budget is not None and report.objective == "total"
    return arena_plots(report.arena, report.loops, {"budget": report.budget or 0} if is_total else {})


def svg_file(report: Report | Analysis) -> bytes:
    """Return the arena of a report as an SVG file, before and after side by side."""
    plots = report_plots(report) if isinstance(report, Report) else arena_plots({"now": report.arena}, report.loops)
    return svg_of(plots)


def analysis_page(analysis: Analysis) -> bytes:
    """Return the page of ``analyze``."""
    arena, sizes, device = analysis.arena, {"now": analysis.file_bytes}, analysis.device
    note, kind = _fit_of(analysis.answer, device)
    return html_of(
        Page(
            title=f"{file_name(analysis.model)} on TensorFlow Lite Micro",
            headline=analysis.summary.headline,
            is_bad=_is_bad(analysis.answer),
            lists=(
                Lines("Before you flash it", analysis.warnings),
                *_limits(analysis.summary.limits, analysis.summary.advice),
            ),
            heading="The arena",
            text=_TEXT,
            plots=arena_plots({"now": arena}, analysis.loops),
            tables=(_figures({"now": analysis.memory}, sizes), *_tail({"now": arena}), _operators(arena)),
            facts=(*firmware_of(_named(analysis), analysis.kernels), ("SHA-256", analysis.sha256)),
            tiles=(
                *_wrong(analysis),
                Tile("RAM to reserve", f"{arena.required:,} bytes", note, kind),
                Tile("Flash", f"{analysis.file_bytes:,} bytes", f"the file{_of_flash(device)}"),
            ),
            bars=(_bar("now", arena), *_limit(analysis.answer, device)),
        )
    )


def _ways(report: Report, commands: Sequence[str]) -> Lines:
    """Return what the model needs in parts and fed, and the command of each that fits."""
    lines = [f"{label}: {said}" if label else said for label, said in ways_of(report, ())]
    code = [command for way, command in zip(report.ways, commands, strict=False) if way.fits]
    return Lines("Other ways to fit", lines, code, "bad")


def _made_for(report: Report) -> tuple[tuple[str, str], ...]:
    """Return the target and the options of a result; no date, so that equal runs write equal pages."""
    shown = {name: value for name, value in changed_options(report.options).items() if name not in _SAID}
    options = ", ".join(f"{name}={value}" for name, value in shown.items()) or "default"
    budget = "none" if report.budget is None else f"{in_words(report.budget)} of {_OBJECTIVES[report.objective]}"
    of_result = ("budget", budget), ("options", options), ("SHA-256 of the result", report.sha256["after"])
    return (*firmware_of(_named(report), report.kernels), *of_result)


def _named(record: Report | Analysis) -> str | None:
    """Return the target as it was named."""
    return record.target if record.device is None else f"{record.device.name} ({record.target})"


def _tiles(report: Report) -> Iterator[Tile]:
    """Yield the answer: RAM and flash against the chip or the budget, run time, proof."""
    before, after = report.arena["before"].required, report.arena["after"].required
    note, kind = _fit_of(report.answer, report.device)
    was = f"was {before:,} ({change_in_percent(before, after) or 'no change'})"
    yield Tile("RAM to reserve", f"{after:,} bytes", f"{was}; {note}" if note else was, kind)
    sizes, kernels = report.file_bytes, flash_in_words(report.kernel_bytes)
    was = f"file, was {sizes['before']:,}{_of_flash(report.device)}"
    yield Tile("Flash", f"{sizes['after']:,} bytes", f"{was}; {kernels}" if kernels else was)
    old, new = report.before.instructions, report.after.instructions
    figures = "; ".join(f"{old[name] / 1e6:,.1f} -> {new[name] / 1e6:,.1f} M with {name}" for name in new)
    yield Tile("Run time", run_time_in_short(shares_of(report)) or "as before", f"instructions, estimated: {figures}")
    said, proof = verified_in_words(report), proof_of(report)
    if not report.equivalence:
        yield Tile("Equality", "not verified", said, "bad")
    elif proof is not None and proof.is_proved:
        yield Tile("Equality", "proved", f"for all inputs; {said}", "good")
    else:
        yield Tile("Equality", "not proved", said)


def _fit_of(answer: Answer, device: DeviceUse | None) -> tuple[str, Literal["", "good", "bad"]]:
    """Say whether the size is within the budget, or the chip's RAM; nothing without either."""
    if answer.fit is None:
        return "", ""
    return said_of_fit(answer, device), "good" if answer.fit.fits else "bad"


def _is_bad(answer: Answer) -> bool:
    return answer.judgement != "right" or (answer.fit is not None and not answer.fit.fits)


def _wrong(analysis: Analysis) -> Iterator[Tile]:
    """Yield why firmware does not compute what the file says, if it does not."""
    if analysis.answer.judgement != "right":
        yield Tile("Verdict", analysis.answer.judgement, wrong_in_words(analysis), "bad")


def _of_flash(device: DeviceUse | None) -> str:
    return "" if device is None or device.flash_bytes is None else f"; the chip has {in_words(device.flash_bytes)}"


def _firmware(report: Report, output: str, calls: Sequence[str]) -> Lines:
    """Return the file to flash, the size to reserve, and the operators to register, as C++."""
    if not report.tflm.runs:
        return Lines("In your firmware", ())
    lines = [*([] if calls else [registered_by(report)]), f"flash {output} and {to_reserve(report)}"]
    if report.answer.table is not None:
        lines.append("codegen writes this as C++, with its planner")
    code = [
        f"// {output}: {report.file_bytes['after']:,} bytes, SHA-256 {report.sha256['after']}",
        f"alignas(16) static uint8_t arena[{max([report.answer.reserve, *report.answer.most.values()])}];",
        f"tflite::MicroMutableOpResolver<{len(calls)}> resolver;",
        *(f"resolver.{call};" for call in calls),
    ]
    return Lines("In your firmware", lines, ["\n".join(code), f"tflite-memopt codegen {output} -o firmware"])


def _bars(report: Report) -> Iterator[SizeBar]:
    yield from (_bar(title, report.arena[side]) for side, title in (("before", "before"), ("after", "now")))
    yield from _limit(report.answer, report.device) if report.objective == "total" else _chip(report.device)


def _bar(title: str, arena: ArenaMap) -> SizeBar:
    tail = sum(part.bytes for part in arena.tail)
    return SizeBar(title, arena.required, arena.required - tail, tail)


def _limit(answer: Answer, device: DeviceUse | None) -> Iterator[SizeBar]:
    """Yield the budget, or the chip's RAM."""
    if answer.fit is not None and answer.fit.is_budget:
        yield SizeBar("budget", answer.fit.limit, is_missed=not answer.fit.fits)
    else:
        yield from _chip(device)


def _chip(device: DeviceUse | None) -> Iterator[SizeBar]:
    if device is not None:
        yield SizeBar(f"RAM of {device.name}", device.ram_bytes)


def _tail(arenas: Mapping[str, ArenaMap]) -> Iterator[PageTable]:
    """Return TFLM's own structures by part."""
    sizes = {side: {part.name: part for part in arena.tail} for side, arena in arenas.items()}
    names = dict.fromkeys(name for parts in reversed(sizes.values()) for name in parts)
    heads = [(f"bytes {side}", f"number {side}") if len(arenas) > 1 else ("bytes", "number") for side in arenas]
    columns = ("part", *(f">{each}" for pair in heads for each in pair))
    rows = [(name, *(cell for parts in sizes.values() for cell in _part(parts.get(name)))) for name in names]
    text = "Kernel buffers persist between runs; they hold, for example, the multipliers of all channels."
    yield PageTable("TFLM's own structures (the tail)", columns, rows, text)


def _part(part: TailPart | None) -> tuple[str, str]:
    return ("-", "-") if part is None else (f"{part.bytes:,}", f"{part.count:,}")


_OBJECTIVES = {"total": "RAM", "head": "the head"}
_SAID = ("target", "kernels", "budget")


def _limits(limits: Sequence[str], advice: Sequence[Advice]) -> tuple[Lines, ...]:
    to_try = [f"{each.option}: {each.text}" for each in advice]
    return Lines("What limits it", limits), Lines("What to try", to_try)


def _rules(uses: Sequence[RewriteUse]) -> PageTable:
    """Return the changes by the names of their rules, which docs/reference.md explains."""
    columns = ("rule", "operators", "exactness", ">bytes without it")
    rows = [
        (use.rule, ", ".join(map(short_name, use.operators)), use.exactness, f"{use.saved_bytes:,}") for use in uses
    ]
    return PageTable("Rewrite rules, for bug reports", columns, rows, is_folded=True)


def _figures(sides: Mapping[str, MemoryUse], file_bytes: Mapping[str, int]) -> PageTable:
    columns = ("figure", *(f">{side}" for side in sides))
    pairs = zip(*map(memory_rows, sides.values()), strict=True)
    figures = [(each[0][0], [value for _, value in each]) for each in pairs]
    figures.append(("file, bytes", [file_bytes[side] for side in sides]))
    rows = [
        (name, *("-" if value is None else f"{value:,}" for value in values))
        for name, values in figures
        if any(value is not None for value in values)
    ]
    return PageTable("In figures", columns, rows, is_folded=True)


def _verification(report: Report) -> Iterator[PageTable]:
    columns = ("runtime", "verdict", "samples", "largest difference", "reason")
    rows = [(name, *_verdict(verdict)) for name, verdict in report.equivalence.items()]
    said = "TFLM ran the plan." if report.basis.plan_executed else "The plan was not run."
    more = "" if report.basis.plan_executed else report.basis.reason or ""
    if not rows:
        said, more = "The result was not verified (--no-verify).", ""
    yield PageTable("Does it compute the same?", columns, rows, said, more=more)


def _verdict(verdict: Verdict) -> tuple[str | Cell, ...]:
    word = {True: "equal", False: "DIFFERENT", None: "no verdict"}[verdict.equal]
    gap = "-" if verdict.equal is None else f"{verdict.max_abs_diff:g}"
    exactness = "" if verdict.exactness == "exact" or not verdict.equal else f" ({verdict.exactness})"
    kind: Literal["", "good", "bad"] = "" if verdict.equal is None else "good" if verdict.equal else "bad"
    return Cell(word + exactness, kind), str(verdict.samples), gap, folded(verdict.reason or "")


def _operators(arena: ArenaMap) -> PageTable:
    columns = (">", "operator", "output", ">bytes in use", ">scratch", ">multiply-accumulates")
    rows = [
        (str(number), step.operator, short_name(step.output), *map("{:,}".format, figures))
        for number, step in enumerate(arena.steps)
        for figures in ((step.working_set, step.scratch_bytes, step.macs),)
    ]
    return PageTable("All operators", columns, rows, is_folded=True)
