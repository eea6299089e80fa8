"""The documents of ``optimize``, ``analyze``, ``verify``, and ``compare``: what a person reads of each record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial

from ..errors import printable
from ..evidence.equivalence.verdict import FILE, PROOF, Verdict, contradiction
from ..memory.figures import ArenaMap, Bounds, InterfaceTensor, MemoryUse, ReuseInForce, StepUse
from ..memory.reserve import LibraryNeed
from ..model.ir.change import Refusal, RewriteUse
from ..options import changed_options, options_text
from ..version import __version__
from .answer import Answer, DeviceUse
from .document import Cell, Document, Kind, Lines, Picture, SizeBar, TextTable, Tile, folded
from .loops import said_of_loop
from .model import FIGURE, Analysis, Comparison, FusionUse, MethodUse, Report, SearchUse
from .pictures.arena import arena_plots
from .summary import (
    advice_of,
    done_of,
    flash_in_words,
    keeps_original,
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
from .words import LONGEST_LISTED, change_in_percent, counted, file_name, in_words, run_time_in_short, short_name

_MOST_LIVE = 12
_MOST_LINES = 12
"""Lines of the short answer, the first and the empty one below it included. Warnings are never left out."""
_MOST_ADVICE = 2
"""Options that the short answer names."""
_MOST_NAMES = 3
_MOST_STEPS = 8
_QUOTED = re.compile(r"'[^']*'")
"""The quoted part of a reason; reasons that differ in it only are listed once."""
_RUNNER_FACTS = {
    "head": "arena head, bytes",
    "tail": "tail, bytes",
    "smallest_arena": "smallest arena, bytes",
    "instructions": "instructions, all inputs",
}
_ARENA_TEXT = (
    "A rectangle per tensor: its width is its lifetime, its height its size in bytes. Tensors that lie over each "
    "other share memory."
)
Sides = Mapping[str, tuple[MemoryUse, Bounds | None]]
"""Figures of "before" and "after", or of "now"."""
_URGENT, _LIMITS, _TO_TRY, _CHANGES = "Before you flash it", "What limits it", "What to try", "Changes"


def report_document(
    report: Report,
    output: str = "the result",
    commands: Sequence[str] = (),
    calls: Sequence[str] = (),
    is_short: bool = False,
) -> Document:
    """Return the document of ``optimize``; short: without tables, names, and some limits and advice.

    ``output`` names the file to flash. ``commands`` write the report's ways; ``calls`` of the resolver register the
    operators of the result.
    """
    sides = {"before": (report.before, None), "after": (report.after, report.bounds)}
    return Document(
        title=f"{file_name(report.model)} on TensorFlow Lite Micro",
        headline=report.summary.headline,
        is_bad=_is_bad(report.answer),
        lists=_short(report, output, commands) if is_short else _all_lines(report, output, commands, calls),
        tables=()
        if is_short
        else (
            _figures(report, sides, report.file_bytes),
            _verification(report),
            *_interface(report),
            _sharing(report.sharing),
            *_libraries(report.libraries["before"], report.libraries["after"]),
            *_peak(report.after.peak, "at the peak, after"),
            _tail(report.arena),
            _operators(report.arena["after"]),
            _applied(report.rewrites),
            _refused(report),
        ),
        facts=_conditions(report),
        tiles=tuple(_tiles(report)),
        bars=tuple(_bars(report)),
        picture=partial(_arenas, report),
    )


def _all_lines(report: Report, output: str, commands: Sequence[str], calls: Sequence[str]) -> tuple[Lines, ...]:
    summary, advice = report.summary, [f"{advised.option}: {advised.text}" for advised in advice_of(report)]
    changes = (*summary.changes, price_of(report))
    return (
        *_ways(report, commands),
        Lines("done", _CHANGES, changes[:-1], is_below=True),
        Lines("price", _CHANGES, changes[-1:], is_below=True),
        Lines("limit", _LIMITS, summary.limits, is_below=True),
        *_to_know(report),
        Lines("loop", "Loops", [said_of_loop(use).removeprefix("loop: ") for use in report.loops], is_below=True),
        Lines("next", _TO_TRY, advice, is_below=True),
        *_flash(report, output, calls),
    )


def _short(report: Report, output: str, commands: Sequence[str]) -> tuple[Lines, ...]:
    """Return at most as many lines as fit in the short answer, but for warnings."""
    first = (*_ways(report, commands), Lines("done", _CHANGES, [done_of(report)]))
    first = (*first, Lines("price", _CHANGES, [price_of(report, each_library=False)]))
    known, advice = _to_know(report), [f"{advised.option}: {advised.text}" for advised in advice_of(report)]
    flash = () if report.within_budget is False else tuple(_flash(report, output, ()))
    taken = sum(len(block.lines) + len(block.commands) for block in (*first, *known, *flash))
    room = max(1, _MOST_LINES - 3 - taken)
    limits = report.summary.limits[: max(1, room - min(_MOST_ADVICE, len(advice)))]
    shown = advice[: min(_MOST_ADVICE, room - len(limits))]
    left = len(advice) - len(shown)
    more = f"-v: all figures{f' and {left} more to try' if left else ''}"
    last = (Lines("next", _TO_TRY, shown), *flash, Lines("more", "More", [more]))
    return (*first, Lines("limit", _LIMITS, limits), *known, *last)


def _ways(report: Report, commands: Sequence[str]) -> Iterator[Lines]:
    """Yield what the model needs in parts and fed, and the command of each that fits."""
    for label, line, command in ways_of(report, commands):
        yield Lines(label, "Other ways to fit", [line], [command] if command else [])


def _to_know(report: Report) -> tuple[Lines, ...]:
    """Return what the firmware has to heed, warnings first of all."""
    measured = () if report.runner is None else _runner_lines(report.runner)
    runner = Lines("runner", "On your runner", tuple(measured), is_below=True)
    return (
        runner,
        Lines("interface", _URGENT, tuple(interface_lines(report))),
        Lines("warning", _URGENT, report.warnings),
    )


def _flash(report: Report, output: str, calls: Sequence[str]) -> Iterator[Lines]:
    """Yield the file to flash, the size to reserve, and the operators to register, as C++ if ``calls`` are known."""
    if not report.tflm.runs:
        return
    size = f"{to_reserve(report)}, " if report.objective == "total" else ""
    code = [
        f"// {output}: {report.file_bytes['after']:,} bytes, SHA-256 {report.sha256['after']}",
        f"alignas(16) static uint8_t arena[{max([report.answer.reserve, *report.answer.most.values()])}];",
        f"tflite::MicroMutableOpResolver<{len(calls)}> resolver;",
        *(f"resolver.{call};" for call in calls),
    ]
    file = "flash your original" if keeps_original(report) else f"flash {output}"
    line = f"{file}: {size}{registered_by(report)}; codegen writes the C++"
    blocks = ["\n".join(code), f"tflite-memopt codegen {output} -o firmware"]
    yield Lines("next", "In your firmware", [line], code=blocks)


def _runner_lines(measured: Mapping[str, Mapping[str, int | str]]) -> Iterator[str]:
    before, after = measured["before"], measured["after"]
    for key, name in _RUNNER_FACTS.items():
        if key in before or key in after:
            yield f"{name}: {_number(before.get(key))} -> {_number(after.get(key))}"


def interface_lines(report: Report) -> Iterator[str]:
    """Yield the inputs and outputs whose types changed, with the meaning of their integers."""
    for before, after in _interface_pairs(report):
        if before is None:
            role = "a state, zeros before the first call" if after.side == "input" else "the next state"
            yield f"{after.side} '{after.name}' is {role}"
        elif before != after:
            changes = []
            if before.shape != after.shape:
                layout = "" if after.layout is None else f", {after.layout}"
                changes.append(f"{list(before.shape)} is now {list(after.shape)}{layout}")
            if before.shape == after.shape or before.type != after.type:
                real = "" if after.scale is None else f"; real = {after.scale!r} * (value - {after.zero_point})"
                changes.append(f"was {before.type}, is {after.type}{real}")
            yield f"{after.side} '{short_name(after.name)}' {'; '.join(changes)}"


def _interface_pairs(report: Report) -> Iterator[tuple[InterfaceTensor | None, InterfaceTensor]]:
    """Yield each input and output of the result with the original's in its place; None for a state, which is new."""
    for side in ("input", "output"):
        before, after = ([each for each in report.interface[when] if each.side == side] for when in ("before", "after"))
        yield from ((before[at] if at < len(before) else None, new) for at, new in enumerate(after))


def brief_of(report: Report, commands: Sequence[str] = ()) -> str:
    """Return the lines of ``optimize --quiet``: headline, ways, price, operators to register, warnings."""
    lines = [report.summary.headline]
    for label, line, command in ways_of(report, commands):
        lines += [f"{label}: {line}" if label else line, *filter(None, [command])]
    lines += [f"price: {price_of(report)}", registered_by(report)]
    return "\n".join(map(printable, (*lines, *(f"warning: {warning}" for warning in report.warnings))))


def analysis_document(analysis: Analysis) -> Document:
    """Return the document of ``analyze``."""
    summary, label, answer = analysis.summary, analysis.planned_for, analysis.answer
    # A plan for other kernels may overwrite what these still read, and so go below any bound of theirs.
    is_wrong = label is not None and label.is_wrong_with(analysis.kernels)
    sides = {"now": (analysis.memory, None if is_wrong else analysis.bounds)}
    kind: Kind = "" if answer.fit is None else "good" if answer.fit.fits else "bad"
    reserve = f"{analysis.arena.required:,} bytes"
    wrong = Tile("Verdict", answer.judgement, wrong_in_words(analysis), "bad")
    return Document(
        title=f"{file_name(analysis.model)} on TensorFlow Lite Micro",
        headline=summary.headline,
        is_bad=_is_bad(answer),
        lists=(
            Lines("limit", _LIMITS, summary.limits, is_below=True),
            Lines("memory", "In several memories", tuple(memory_lines(analysis)), is_below=True),
            Lines("warning", _URGENT, analysis.warnings),
            Lines("plan", "The plan in the file", tuple(_planned_for(analysis)), is_below=True),
            Lines("loop", "Loops", [said_of_loop(use).removeprefix("loop: ") for use in analysis.loops], is_below=True),
            Lines("next", _TO_TRY, [f"{advised.option}: {advised.text}" for advised in summary.advice], is_below=True),
        ),
        tables=(
            _figures(analysis, sides, {"now": analysis.file_bytes}),
            _largest_steps(analysis.steps),
            *_peak(analysis.memory.peak, "at the peak"),
            _tail({"now": analysis.arena}),
            _operators(analysis.arena),
        ),
        facts=(*made_for(analysis.target, analysis.kernels, analysis.device), ("SHA-256", analysis.sha256)),
        tiles=(
            *(() if answer.judgement == "right" else (wrong,)),
            Tile("RAM to reserve", reserve, said_of_fit(answer, analysis.device), kind),
            Tile("Flash", f"{analysis.file_bytes:,} bytes", f"the file{_of_flash(analysis.device)}"),
        ),
        bars=(_bar("now", analysis.arena), *_limit(answer, analysis.device)),
        picture=partial(_arenas, analysis),
    )


def memory_lines(analysis: Analysis) -> Iterator[str]:
    """Yield what each memory holds of the plan of ``codegen --memory``, and the bytes that a run moves there."""
    whole = max(1, sum(part.moved for part in analysis.memories))
    for number, part in enumerate(analysis.memories):
        structures = ["TFLM's own structures"] if part.has_structures else []
        holds = "; ".join([*([_names(part.tensors)] if part.tensors else []), *structures])
        yield (
            f"{part.name} ({'slower' if number else 'fastest'}): {part.bytes:,} of {part.capacity:,} bytes: "
            f"{holds or 'nothing'}; a run moves {part.moved:,} bytes there ({100 * part.moved / whole:.0f} %)"
        )
    if analysis.memories:
        yield "codegen with the same --memory writes this plan"


def _planned_for(analysis: Analysis) -> Iterator[str]:
    label = analysis.planned_for
    if label is None:
        return
    is_same = (label.target, label.kernels) == (analysis.target, analysis.kernels)
    rightness = "and computes wrongly with others" if label.overlaps else "and is correct with any"
    here = f"; counted here for {analysis.target or 'any target'} with {analysis.kernels} kernels"
    made = f"; made by tflite-memopt {label.version} with {options_text(label.options)}" if label.version else ""
    yield (
        f"the plan in the file was made for {label.target or 'any target'} with {label.kernels} kernels, "
        f"{'as counted here, ' if is_same else ''}{rightness}{'' if is_same else here}{made}"
    )


def verdict_line(verdicts: Mapping[str, Verdict]) -> str:
    """Return the answer of ``verify`` in one line: whether anything differs, what is proved, and what ran."""
    differing = [name for name, verdict in verdicts.items() if verdict.equal is False]
    if differing:
        first, proof = verdicts[differing[0]], verdicts.get(PROOF)
        line = f"DIFFERENT by {' and '.join(differing)}: {first.reason or 'outputs differ'}"
        if proof is None or not proof.finite_only:
            return line
        of_any = {**verdicts, PROOF: replace(proof, finite_only=False)}
        limit = "; the proof is of finite values: if none overflows, report both files"
        return line if contradiction(of_any) is None else f"{line}{limit}"
    ran = [name for name, verdict in verdicts.items() if verdict.equal and verdict.samples]
    proof = verdicts.get(PROOF)
    proved = (proof.reason or "proved for all inputs") if proof is not None and proof.equal else "not proved"
    if not ran:
        reasons = {verdict.reason or "" for name, verdict in verdicts.items() if name in _RUNTIMES}
        why = (reasons.pop() if len(reasons) == 1 else "") or "no runtime could run both models"
        return f"NOT verified, {proved}: {why}"
    samples, words = max(verdicts[name].samples for name in ran), {_word(verdicts[name]) for name in ran}
    approximate = "APPROXIMATE" in words
    how = "APPROXIMATE" if approximate else "bit-exact" if words == {"equal"} else "equal within a stated tolerance"
    verdict = "compared: outputs" if approximate else f"equal: {proved}, and"
    where = " and ".join(_RUNTIMES.get(name, name) for name in sorted(ran))
    return f"{verdict} {how} on {counted(samples, 'input')} ({where})"


_RUNTIMES = {"tflm": "TFLM", "litert": "LiteRT", "runner": "your runner"}


def verification_table(verdicts: Mapping[str, Verdict], text: str = "", more: str = "") -> TextTable:
    """Return a row for each proof, for the interface, and for each runtime; only runtimes have samples."""
    columns = ("check", "verdict", "samples", "largest difference", "values that differ", "reason")
    rows = []
    for check, verdict in verdicts.items():
        kind: Kind = "" if verdict.equal is None else "good" if verdict.equal else "bad"
        is_known = verdict.equal is not None
        share = f"{100 * verdict.differing_share:.3g} %" if is_known else "-"
        figures = str(verdict.samples or "-"), _gap(verdict) if is_known else "-", share
        name = "interface" if check == FILE else check
        rows.append((name, Cell(_word(verdict), kind), *figures, folded(verdict.reason or "")))
    return TextTable("Does it compute the same?", columns, rows, text, more, is_open=True)


def _word(verdict: Verdict) -> str:
    if not verdict.equal:
        return "DIFFERENT" if verdict.equal is False else "no verdict"
    if verdict.exactness == "approximates":
        return "APPROXIMATE"
    if verdict.tolerance is None:
        return "equal"
    return f"equal within {verdict.tolerance['absolute']:g} + {verdict.tolerance['relative']:g} of the largest"


def _gap(verdict: Verdict) -> str:
    """Return the largest difference, in steps if integers differ."""
    is_in_steps = verdict.exactness == "approximates" and verdict.max_lsb_diff is not None
    gap = f"{verdict.max_lsb_diff:g} LSB" if is_in_steps else f"{verdict.max_abs_diff:g}"
    agreeing = verdict.agreeing_argmax_share if verdict.exactness == "approximates" else None
    return gap if agreeing is None else f"{gap}; same largest score in {agreeing:.1%}"


def comparison_tables(comparison: Comparison) -> Iterator[TextTable]:
    """Yield the tables of ``compare``, one row per method."""
    title = f"{file_name(comparison.model)}: order of {comparison.operators} operators, peak in bytes"
    order = f"in the order of {comparison.planned_order}"
    yield _methods(title, "peak", comparison.schedulers)
    yield _methods(f"offsets {order}, arena in bytes", "arena", comparison.planners)
    yield _methods(f"shared objects {order}, bytes of all", "objects", comparison.shared_objects)
    columns = ("fused blocks", "counted", ">bytes", ">MACs", ">times", "layers fused")
    rows = []
    for use in comparison.fusion:
        if use.bytes is not None and use.macs is not None:
            times = f"{use.macs / (comparison.fusion[0].macs or 1):.2f}"
            ends = "with input and output" if use.ends_counted else "between the ends"
            rows.append((_setting(use), ends, _number(use.bytes), _number(use.macs), times, ", ".join(use.blocks)))
    title = f"msf-CNN on the first {comparison.fusion_layers} convolutions and pools, counted as in its paper"
    yield TextTable(title, columns, rows)


def _setting(use: FusionUse) -> str:
    """Return the problem of msf-CNN and its limit."""
    if use.limit is None:
        return use.problem
    limit = f"in {use.limit:,.0f} bytes" if use.problem == "fewest MACs" else f"for {use.limit} times the MACs"
    return f"{use.problem} {limit}"


def _methods(title: str, figure: str, uses: Sequence[MethodUse]) -> TextTable:
    rows = []
    for use in uses:
        gap = 100 * (use.bytes / use.lower_bound - 1) if use.lower_bound else 0
        proved = "optimal" if use.optimal else f"gap {gap:.1f} %"
        sizes = _number(use.bytes), _number(use.lower_bound)
        rows.append((use.method, *sizes, proved, f"{use.seconds:.3f}", _number(use.states)))
    return TextTable(title, ("method", f">{figure}", ">lower bound", "proved", ">seconds", ">states"), rows)


def _figures(record: Report | Analysis, sides: Sides, file_bytes: Mapping[str, int]) -> TextTable:
    """Return the figures of each side, and how they change; those that no side has are left out.

    Below them are the fields of the record that are declared as figures, of its last side.
    """
    rows: list[tuple[str, ...]] = []
    by_side = [list(_figures_of(*facts, file_bytes[side])) for side, facts in sides.items()]
    for named in zip(*by_side, strict=True):
        values = [value for _, value in named]
        change = [_change(values[0], values[1])] if len(values) == 2 else []
        if any(value is not None for value in values):
            rows.append((named[-1][0], *map(_number, values), *change))
    change_column = (">change",) if len(sides) == 2 else ()
    for field in fields(record):
        name, value = field.metadata.get(FIGURE), getattr(record, field.name)
        if name is not None and value is not None:
            rows.append((name, *["-"] * (len(sides) - 1), _number(value), *[""] * len(change_column)))
    title = f"{file_name(record.model)}, in figures"
    return TextTable(title, ("figure", *(f">{side}" for side in sides), *change_column), rows)


def _figures_of(memory: MemoryUse, bounds: Bounds | None, file_bytes: int) -> Iterator[tuple[str, int | None]]:
    """Yield the figures of a model with their names; None for one that does not exist."""
    guess, required = "" if memory.required_is_exact else " (estimate)", memory.required_bytes
    yield from ((f"instructions, estimated, {name}", count) for name, count in memory.instructions.items())
    yield "operators", memory.operators
    yield "multiply-accumulates", memory.macs
    yield "weights read in a run, bytes", memory.weights_read
    yield "peak working set, bytes", memory.peak_bytes
    yield "arena head, planned, bytes", memory.arena_bytes
    for part in ("head", "tail", "total"):
        measured, bits = memory.tflm.get(part), memory.tflm.get("pointer_bits", 64)
        yield f"TFLM measured {part} ({bits}-bit), bytes", measured if isinstance(measured, int) else None
    yield f"arena to reserve on the target{guess}, bytes", required.get("target")
    yield f"the same with codegen's planner{guess}, bytes", required.get("table")
    yield f"arena to reserve, 32-bit{guess}, bytes", required["32"]
    yield f"arena to reserve, 64-bit{guess}, bytes", required["64"]
    for which, field in (("this order", "plan"), ("any order", "schedule"), ("inputs/outputs", "io")):
        yield f"lower bound on the head, {which}, bytes", None if bounds is None else getattr(bounds, field)
    yield "file, bytes", file_bytes


def _verification(report: Report) -> TextTable:
    order, plan, basis, tflm = report.schedule, report.plan, report.basis, report.equivalence.get("tflm")
    how = (
        f"made for {report.target or 'any target'} with {report.kernels} kernels; "
        f"operator order ({order.method}): {_end(order)}; tensor offsets for this order ({plan.method}): {_end(plan)}"
    )
    if not report.equivalence:
        return TextTable("Does it compute the same?", text=f"{how}; NOT verified (--no-verify)", is_open=True)
    where = "" if basis.executed_by == ("tflm",) else f" ({', '.join(basis.executed_by)})"
    kernels = "" if tflm is None or tflm.kernels is None else f"; kernels: {tflm.kernels}"
    ran = f"TFLM executed the plan{where}{kernels}"
    more = ran if basis.plan_executed else f"the plan was NOT executed: {basis.reason}"
    return verification_table(report.equivalence, how, more)


def _end(search: SearchUse) -> str:
    """Say how far the order or plan is from its bound, and why the search ended before a proof."""
    if search.optimal:
        return "proved optimal"
    share = 100 * search.gap_bytes / max(1, search.lower_bound)
    end = "ran out of time" if search.ended_by == "clock" else "reached its limit of work"
    return f"at most {counted(search.gap_bytes, 'byte')} ({share:.1f} %) above the lower bound; the search {end}"


def _interface(report: Report) -> Iterator[TextTable]:
    if report.interface["before"] == report.interface["after"]:
        return
    rows = []
    for before, after in _interface_pairs(report):
        scale, zero = ("-" if value is None else repr(value) for value in (after.scale, after.zero_point))
        types = "-" if before is None else before.type, after.type
        rows.append((after.side, after.name, str(list(after.shape)), *types, scale, zero, _number(after.bytes)))
    columns = ("side", "name", "shape", "was", "is", "scale", "zero point", ">bytes")
    yield TextTable("interface: real = scale * (value - zero point)", columns, rows)


def _sharing(uses: Sequence[ReuseInForce]) -> TextTable:
    columns = ("operator", "kind", "input", "output", ">shared bytes")
    rows = [
        (use.operator, use.kind, short_name(use.input), short_name(use.output), _number(use.saved_bytes))
        for use in uses[:_MOST_LIVE]
    ]
    left = len(uses) - _MOST_LIVE
    more = f"... and {left} more" if left > 0 else ""
    return TextTable("outputs that share bytes with their inputs, largest first", columns, rows, more=more)


def _libraries(before: Mapping[str, LibraryNeed], after: Mapping[str, LibraryNeed]) -> Iterator[TextTable]:
    title = "arena to reserve (32-bit), bytes, by the kernel library that the firmware links"
    rows = []
    for name, need in after.items():
        measured = "yes" if need.measured else "no, counted from its source"
        rows.append((name, _number(before[name].required), _number(need.required), measured))
    if len(rows) > 1:
        yield TextTable(title, ("kernels", ">before", ">after", "measured"), rows)


def _peak(step: StepUse | None, when: str) -> Iterator[TextTable]:
    if step is None:
        return
    title = f"{when}: operator {step.index} {step.operator} '{short_name(step.output)}', {step.bytes:,} bytes"
    shown, rest = step.live[:_MOST_LIVE], step.live[_MOST_LIVE:]
    rows = [(short_name(tensor.name), str(list(tensor.shape)), tensor.type, _number(tensor.bytes)) for tensor in shown]
    if rest:
        rows.append((f"{len(rest)} more", "", "", _number(sum(tensor.bytes for tensor in rest))))
    if step.scratch_bytes:
        rows.append(("kernel scratch", "", "", _number(step.scratch_bytes)))
    total = sum(tensor.bytes for tensor in step.live) + step.scratch_bytes
    overlap = f"they overlap: {total:,} bytes in {step.bytes:,} bytes of the arena" if total > step.bytes else ""
    yield TextTable(title, ("live tensor", "shape", "type", ">bytes"), rows, more=overlap)


def _largest_steps(steps: Sequence[StepUse]) -> TextTable:
    rows = [
        (f"{step.index} {step.operator}", short_name(step.output), _number(step.macs), _number(step.bytes))
        for step in sorted(steps, key=lambda step: -step.bytes)[:_MOST_STEPS]
    ]
    return TextTable("largest working sets", ("operator", "output", ">MACs", ">bytes"), rows)


def _operators(arena: ArenaMap) -> TextTable:
    rows = []
    for number, step in enumerate(arena.steps):
        sizes = map(_number, (step.working_set, step.scratch_bytes, step.macs))
        rows.append((str(number), step.operator, short_name(step.output), *sizes))
    columns = (">", "operator", "output", ">bytes in use", ">scratch", ">multiply-accumulates")
    return TextTable("All operators", columns, rows, is_long=True)


def _tail(arenas: Mapping[str, ArenaMap]) -> TextTable:
    """Return TFLM's own structures by part."""
    by_side = [{part.name: part for part in arena.tail} for arena in arenas.values()]
    rows = []
    for name in dict.fromkeys(name for parts in reversed(by_side) for name in parts):
        parts = [parts.get(name) for parts in by_side]
        figures = [(None, None) if part is None else (part.bytes, part.count) for part in parts]
        rows.append((name, *(_number(figure) for pair in figures for figure in pair)))
    heads = [f">{what} {side}" if len(arenas) > 1 else f">{what}" for side in arenas for what in ("bytes", "number")]
    text = "Kernel buffers persist between runs; they hold, for example, the multipliers of all channels."
    return TextTable("TFLM's own structures (the tail)", ("part", *heads), rows, text, is_open=True, is_long=True)


def _applied(uses: Sequence[RewriteUse]) -> TextTable:
    """Return the changes by the names of their rules, which docs/reference.md explains."""
    title = "applied rewrites, and the bytes that the model would need in addition without each one"
    rows = [(use.rule, _names(use.operators), use.exactness, f"{use.saved_bytes:,}") for use in uses]
    return TextTable(title, ("rule", "at", "exactness", ">bytes"), rows)


def _refused(report: Report) -> TextTable:
    """Return one row a reason why a rule that fits was not applied."""
    if not report.rewrites and not report.refused:
        return TextTable("", text="rewrites: no rule fits any operator, or none was tried")
    by_reason: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in report.refused:
        by_reason.setdefault((refusal.rule, _QUOTED.sub("'...'", refusal.reason)), []).append(refusal)
    rows = []
    for (rule, reason), alike in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        names = _names([refusal.operator for refusal in alike])
        rows.append((rule, alike[0].reason if len(alike) == 1 else reason, str(len(alike)), names))
    return TextTable("rewrites that match and were not applied", ("rule", "reason", ">number", "at"), rows)


def _conditions(report: Report) -> tuple[tuple[str, str], ...]:
    """Return the target and the options of a result; no date, so that equal runs write equal pages."""
    changed = changed_options(report.options).items()
    options = [f"{name}={value}" for name, value in changed if name not in ("target", "kernels", "budget")]
    counted_bytes = "RAM" if report.objective == "total" else "the head"
    budget = "none" if report.budget is None else f"{in_words(report.budget)} of {counted_bytes}"
    return (
        *made_for(report.target, report.kernels, report.device),
        ("budget", budget),
        ("options", ", ".join(options) or "default"),
        ("SHA-256 of the result", report.sha256["after"]),
    )


def made_for(target: str | None, kernels: str, device: DeviceUse | None = None) -> tuple[tuple[str, str], ...]:
    """Return the firmware that figures hold for, and the version that computed them."""
    name = target if device is None else f"{device.name} ({target})"
    return ("target", name or "any"), ("kernels", kernels), ("tflite-memopt", __version__)


def _tiles(report: Report) -> Iterator[Tile]:
    """Yield the answer: RAM and flash against the chip or the budget, run time, proof."""
    before, after = report.arena["before"].required, report.arena["after"].required
    fit, note = report.answer.fit, said_of_fit(report.answer, report.device)
    was = f"was {before:,} ({change_in_percent(before, after) or 'no change'})"
    kind: Kind = "" if fit is None else "good" if fit.fits else "bad"
    yield Tile("RAM to reserve", f"{after:,} bytes", f"{was}; {note}" if note else was, kind)
    sizes, kernels = report.file_bytes, flash_in_words(report.kernel_bytes)
    was = f"file, was {sizes['before']:,}{_of_flash(report.device)}"
    yield Tile("Flash", f"{sizes['after']:,} bytes", f"{was}; {kernels}" if kernels else was)
    old, new = report.before.instructions, report.after.instructions
    figures = "; ".join(f"{old[name] / 1e6:,.1f} -> {new[name] / 1e6:,.1f} M with {name}" for name in new)
    yield Tile("Run time", run_time_in_short(shares_of(report)) or "as before", f"instructions, estimated: {figures}")
    verified, proof = verified_in_words(report), proof_of(report)
    if not report.equivalence:
        yield Tile("Equality", "not verified", verified, "bad")
    elif proof is not None and proof.is_proved:
        yield Tile("Equality", "proved", f"for all inputs; {verified}", "good")
    else:
        yield Tile("Equality", "not proved", verified)


def _is_bad(answer: Answer) -> bool:
    return answer.judgement != "right" or (answer.fit is not None and not answer.fit.fits)


def _of_flash(device: DeviceUse | None) -> str:
    return "" if device is None or device.flash_bytes is None else f"; the chip has {in_words(device.flash_bytes)}"


def _bars(report: Report) -> Iterator[SizeBar]:
    yield from (_bar(title, report.arena[side]) for side, title in (("before", "before"), ("after", "now")))
    yield from _limit(report.answer if report.objective == "total" else None, report.device)


def _bar(title: str, arena: ArenaMap) -> SizeBar:
    tail = sum(part.bytes for part in arena.tail)
    return SizeBar(title, arena.required, arena.required - tail, tail)


def _limit(answer: Answer | None, device: DeviceUse | None) -> Iterator[SizeBar]:
    """Yield the budget, or the chip's RAM."""
    if answer is not None and answer.fit is not None and answer.fit.is_budget:
        yield SizeBar("budget", answer.fit.limit, is_missed=not answer.fit.fits)
    elif device is not None:
        yield SizeBar(f"RAM of {device.name}", device.ram_bytes)


def _arenas(record: Report | Analysis) -> Picture:
    """Return the arena of a model; before and after, and the budget."""
    if isinstance(record, Analysis):
        return Picture("The arena", _ARENA_TEXT, arena_plots({"now": record.arena}, record.loops))
    limits = {"budget": record.budget} if record.budget is not None and record.objective == "total" else {}
    text = f"{_ARENA_TEXT} Before and after have the same colors."
    return Picture("The arena", text, arena_plots(record.arena, record.loops, limits))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(short_name(name, LONGEST_LISTED) for name in names[:_MOST_NAMES])
    left = len(names) - _MOST_NAMES
    return f"{shown} and {left} more" if left > 0 else shown


def _number(number: int | str | None) -> str:
    return "-" if number is None else f"{number:,}" if isinstance(number, int) else number


def _change(before: int | None, after: int | None) -> str:
    if before is None or after is None or before in (0, after):
        return ""
    return f"{100 * (after - before) / before:+.1f} %"
