"""Reports for people, as rich tables. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..equivalence.verdict import Verdict
from ..io.plan_label import PlanLabel
from ..kernels.support import TflmSupport
from ..memory.figures import LibraryNeed, MemoryUse, StepUse
from ..memory.work import slowdowns
from .explanation import render_explanation
from .loops import said_of_loop
from .model import Analysis, Comparison, MethodUse, Report, SearchUse, SramStudy, Summary
from .words import counted, in_short, in_words, percent, short_name

_MAX_LIVE = 12
_RUNNER_FACTS = {
    "head": "arena head, bytes",
    "tail": "tail, bytes",
    "smallest_arena": "smallest arena, bytes",
    "instructions": "instructions, all inputs",
}


def render_report(report: Report, explain: bool = False) -> RenderableType:
    """What ``optimize`` shows: before and after, the proof, the peak, warnings; ``explain`` adds the rewrites."""
    parts: list[RenderableType] = [_sentences(report.summary, report.tflm), _comparison(report), _proof(report)]
    if report.runner is not None:
        parts.append(_on_runner(report.runner))
    if report.interface["before"] != report.interface["after"]:
        parts.append(_interface(report))
    if explain:
        parts.append(render_explanation(report))
    parts += [Text(said_of_loop(use)) for use in report.loops]
    if report.sharing:
        parts.append(_sharing(report))
    if len(report.arena_by_kernels) > 1:
        arenas = "; ".join(f"{name} {_n(size)}" for name, size in report.arena_by_kernels.items())
        parts.append(Text(f"head by kernel profile (it must match the firmware's kernels): {arenas}"))
    if len(report.libraries["after"]) > 1:
        parts.append(_libraries(report.libraries["before"], report.libraries["after"]))
    if report.after.peak is not None:
        parts.append(_peak(report.after.peak, "at the peak, after"))
    parts += [_text(f"warning: {warning}", style="yellow") for warning in report.warnings]
    if report.budget is not None:
        parts.append(_budget(report))
    return Group(*parts)


def render_analysis(analysis: Analysis) -> RenderableType:
    """What ``analyze`` shows: the memory of one model, bounds, the peak."""
    table = Table(title=Text(analysis.model or "model"), title_justify="left")
    table.add_column("bytes")
    table.add_column("now", justify="right")
    for name, value in _memory_rows(analysis.memory):
        if value != "-":  # TFLM's own figures need a run of it, which an analysis does without
            table.add_row(name, value)
    for name, count in analysis.memory.instructions.items():
        table.add_row(f"instructions, estimated, {name}", _n(count))
    bounds, label = analysis.bounds, analysis.planned_for
    orders = (("this order", bounds.plan), ("any order", bounds.schedule), ("inputs/outputs", bounds.io))
    # A plan for other kernels may overwrite what these still read, and so go below any bound of theirs.
    for which, bound in () if label is not None and label.is_wrong_with(analysis.kernels) else orders:
        table.add_row(f"lower bound on the head, {which}", _n(bound))
    table.add_row("file", _n(analysis.file_bytes))
    parts: list[RenderableType] = [_sentences(analysis.summary, analysis.tflm), table, _largest_steps(analysis.steps)]
    if label is not None:
        parts.insert(1, _planned_for(label, analysis))
    parts += [Text(said_of_loop(use)) for use in analysis.loops]
    if analysis.memory.peak is not None:
        parts.append(_peak(analysis.memory.peak, "at the peak"))
    if analysis.study is not None:
        parts += _study(analysis.study)
    return Group(*parts)


def _study(study: SramStudy) -> list[RenderableType]:
    """Traffic by size of the fast memory, and how much the order of operators decides."""
    table = Table(title="bytes between chip and outside (Belady)", title_justify="left")
    for column in ("fast memory", "order of the file", "best order", "change"):
        table.add_column(column, justify="right")
    for use in study.traffic:
        cells = _n(use.own_order), _n(use.best_order)
        table.add_row(in_words(use.on_chip), *cells, _change(*cells))
    peaks = study.random_peaks
    best = "proved the smallest" if study.is_proved else "the smallest found"
    return [
        table,
        Text(
            f"largest working set: {_n(study.own_peak)} bytes in the order of the file, {_n(study.best_peak)} in the "
            f"best order ({best}); {_n(peaks[0])} to {_n(peaks[-1])} in {_n(len(peaks))} random orders, of which "
            f"{100 * study.fitting_share:.1f} % fit {in_words(study.sram)}"
        ),
    ]


def _sentences(summary: Summary, support: TflmSupport) -> Text:
    """The headline, and under it what changed, what limits the result and what would help, a line each."""
    text = Text(summary.headline, style="bold" if support.runs else "bold red")
    advice = [f"{each.option}: {each.text}" for each in summary.advice]
    sections = (("what changed", summary.changes), ("what limits it now", summary.limits), ("what would help", advice))
    for title, lines in sections:
        if lines:
            text.append(f"\n\n{title}", style="not bold underline")
        for line in lines:
            text.append(f"\n  - {line}", style="not bold")
    return text.append("\n")


def brief_of(report: Report) -> str:
    """What ``optimize --quiet`` prints, a line each: the first one, the price, warnings."""
    lines = [report.summary.headline, *report.summary.changes[-1:]]
    lines += [f"warning: {warning}" for warning in report.warnings]
    return _text("\n".join(lines)).plain


def render_verdicts(verdicts: dict[str, Verdict]) -> RenderableType:
    """What ``verify`` shows: one row a runtime."""
    table = Table(title="equality", title_justify="left")
    for column in ("runtime", "verdict", "samples", "largest difference", "values that differ", "reason"):
        table.add_column(column)
    for runtime, verdict in verdicts.items():
        gap, share = (
            (_gap(verdict), f"{100 * verdict.differing_share:.3g} %") if verdict.equal is not None else ("-", "-")
        )
        table.add_row(runtime, _word(verdict), str(verdict.samples), gap, share, Text(_short(verdict.reason or "")))
    return table


def _word(verdict: Verdict) -> str:
    if not verdict.equal:
        return "DIFFERENT" if verdict.equal is False else "no verdict"
    if verdict.exactness == "approximates":
        return "APPROXIMATE"
    if verdict.tolerance is None:
        return "equal"
    return f"equal within {verdict.tolerance['absolute']:g} + {verdict.tolerance['relative']:g} of the largest"


def _gap(verdict: Verdict) -> str:
    """The largest difference, and in steps where integers differ."""
    text = f"{verdict.max_abs_diff:g}"
    if verdict.exactness != "approximates":
        return text
    if verdict.max_lsb_diff is not None:
        text = f"{verdict.max_lsb_diff:g} LSB"
    agreeing = verdict.agreeing_argmax_share
    return text if agreeing is None else f"{text}; same largest score in {agreeing:.1%}"


def render_comparison(comparison: Comparison) -> RenderableType:
    """What ``compare`` shows: one row a method."""
    parts: list[RenderableType] = []
    orders, plans = comparison.schedulers, comparison.planners
    if orders:
        title = f"{comparison.model or 'model'}: order of {comparison.operators} operators, peak in bytes"
        parts.append(_methods(title, "peak", orders))
    if plans:
        parts.append(_methods(f"offsets in the order of {comparison.planned_order}, arena in bytes", "arena", plans))
    if comparison.shared_objects:
        parts.append(_methods("shared objects in that order, bytes of all", "objects", comparison.shared_objects))
    return Group(*parts)


def _methods(title: str, figure: str, uses: tuple[MethodUse, ...]) -> Table:
    table = Table(title=Text(title), title_justify="left")
    for column in ("method", figure, "lower bound", "proved", "seconds", "states"):
        table.add_column(column, justify="left" if column in ("method", "proved") else "right")
    for use in uses:
        gap = 100 * (use.bytes / use.lower_bound - 1) if use.lower_bound else 0
        proved = "optimal" if use.optimal else f"gap {gap:.1f} %"
        states = "-" if use.states is None else _n(use.states)
        table.add_row(use.method, _n(use.bytes), _n(use.lower_bound), proved, f"{use.seconds:.3f}", states)
    return table


def _comparison(report: Report) -> Table:
    table = Table(title=Text(report.model or "model"), title_justify="left")
    for column in ("bytes", "before", "after", "change"):
        table.add_column(column, justify="left" if column == "bytes" else "right")
    old, new = report.before.instructions, report.after.instructions
    for name, share in slowdowns(old, new).items():
        table.add_row(f"instructions, estimated, {name}", _n(old[name]), _n(new[name]), percent(share))
    rows = zip(_memory_rows(report.before), _memory_rows(report.after), strict=True)
    for (label, before), (_, after) in rows:
        table.add_row(label, before, after, _change(before, after))
    bounds = report.bounds
    table.add_row("lower bound on the head, this order", "", _n(bounds.plan), "")
    table.add_row("lower bound on the head, any order", "", _n(bounds.schedule), "")
    table.add_row("lower bound on the head, inputs/outputs", "", _n(bounds.io), "")
    sizes = report.file_bytes
    table.add_row("file", _n(sizes["before"]), _n(sizes["after"]), _change(_n(sizes["before"]), _n(sizes["after"])))
    return table


def _interface(report: Report) -> Table:
    table = Table(title="interface: real = scale * (value - zero point)", title_justify="left")
    for column in ("side", "name", "shape", "was", "is", "scale", "zero point", "bytes"):
        table.add_column(column, justify="right" if column == "bytes" else "left", overflow="fold")
    for before, after in zip(report.interface["before"], report.interface["after"], strict=True):
        scale, zero = ("-" if value is None else repr(value) for value in (after.scale, after.zero_point))
        shape = Text(str(list(after.shape)))
        table.add_row(after.side, _text(after.name), shape, before.type, after.type, scale, zero, _n(after.bytes))
    return table


def _sharing(report: Report) -> Table:
    table = Table(title="outputs that share bytes with their inputs, largest first", title_justify="left")
    for column in ("operator", "kind", "input", "output", "shared bytes"):
        table.add_column(column, justify="right" if column == "shared bytes" else "left")
    for use in report.sharing[:_MAX_LIVE]:
        table.add_row(
            use.operator, use.kind, Text(short_name(use.input)), Text(short_name(use.output)), _n(use.saved_bytes)
        )
    if len(report.sharing) > _MAX_LIVE:
        table.add_row(f"... and {len(report.sharing) - _MAX_LIVE} more", "", "", "", "")
    return table


def _proof(report: Report) -> RenderableType:
    order, plan = report.schedule, report.plan
    how = (
        f"made for {report.target or 'any target'} with {report.kernels} kernels\n"
        f"order of the operators ({order.method}): {_end(order)}\n"
        f"places of the tensors in this order ({plan.method}): {_end(plan)}"
    )
    if not report.equivalence:
        return Group(Text(how), Text("equality was NOT proved (--no-verify)", style="yellow"))
    return Group(Text(how), render_verdicts(report.equivalence), Text(_basis(report)))


def _end(search: SearchUse) -> str:
    """How good the order or plan is known to be, and what ended the search where that is not known."""
    if search.optimal:
        return "proved the best"
    share = 100 * search.gap_bytes / max(1, search.lower_bound)
    end = "when time was up" if search.ended_by == "clock" else "at its limit of work"
    return f"at most {counted(search.gap_bytes, 'byte')} ({share:.1f} %) above the best; the search ended {end}"


def _basis(report: Report) -> str:
    """What the verdicts rest on, in a line or two."""
    basis, tflm = report.basis, report.equivalence.get("tflm")
    where = "" if basis.executed_by == ("tflm",) else f" ({', '.join(basis.executed_by)})"
    kernels = "" if tflm is None or tflm.kernels is None else f"; its kernels: {tflm.kernels}"
    plan = f"TFLM executed the plan{where}, every tensor was right at its last use{kernels}"
    if not basis.plan_executed:
        plan = f"the plan was NOT executed: {basis.reason}"
    if basis.coverage is None or basis.coverage.is_complete:
        return plan
    return f"{plan}\n{basis.coverage.shortfall}"


def _on_runner(measured: Mapping[str, Mapping[str, int | str]]) -> Table:
    before, after = measured["before"], measured["after"]
    table = Table(title="measured on the runner", title_justify="left")
    for column in ("", "before", "after", "change"):
        table.add_column(column, justify="right" if column else "left")
    for key, label in _RUNNER_FACTS.items():
        if key in before or key in after:
            cells = [_n(each.get(key, "-")) for each in (before, after)]
            table.add_row(label, *cells, _change(*cells))
    return table


def _libraries(before: Mapping[str, LibraryNeed], after: Mapping[str, LibraryNeed]) -> Table:
    title = "arena to reserve (32-bit) by the kernel library that the firmware links; --target chooses one"
    table = Table(title=title, title_justify="left")
    for column in ("kernels", "before", "after", "known by"):
        table.add_column(column, justify="right" if column in ("before", "after") else "left")
    for name, need in after.items():
        table.add_row(name, _n(before[name].required), _n(need.required), "measured" if need.measured else "its source")
    return table


def _planned_for(label: PlanLabel, analysis: Analysis) -> Text:
    said = f"the plan in the file was made for {label.target or 'any target'} with {label.kernels} kernels"
    same = (label.target, label.kernels) == (analysis.target, analysis.kernels)
    others = "and computes wrongly with others" if label.overlaps else "and is right with any"
    counted_for = (
        "" if same else f"; counted here for {analysis.target or 'any target'} with {analysis.kernels} kernels"
    )
    return _text(f"{said}, {'as counted here, ' if same else ''}{others}{counted_for}")


def _memory_rows(use: MemoryUse) -> Iterator[tuple[str, str]]:
    guess = "" if use.required_is_exact else " (estimate)"
    yield "operators", _n(use.operators)
    yield "multiply-accumulates", _n(use.macs)
    yield "peak working set", _n(use.peak_bytes)
    yield "arena head, planned", _n(use.arena_bytes)
    for part in ("head", "tail", "total"):
        bits = use.tflm.get("pointer_bits", 64)
        yield f"TFLM measured {part} ({bits}-bit)", _n(use.tflm[part]) if part in use.tflm else "-"
    if "target" in use.required_bytes:
        yield f"arena to reserve on the target{guess}", _n(use.required_bytes["target"])
    yield f"arena to reserve, 32-bit{guess}", _n(use.required_bytes["32"])
    yield f"arena to reserve, 64-bit{guess}", _n(use.required_bytes["64"])


def _peak(step: StepUse, when: str) -> RenderableType:
    title = f"{when}: operator {step.index} {step.operator} '{short_name(step.output)}', {_n(step.bytes)} bytes"
    table = Table(title=_text(title), title_justify="left")
    for column in ("live tensor", "shape", "type", "bytes"):
        table.add_column(column, justify="right" if column == "bytes" else "left", overflow="fold")
    for tensor in step.live[:_MAX_LIVE]:
        table.add_row(_text(short_name(tensor.name)), Text(str(list(tensor.shape))), tensor.type, _n(tensor.bytes))
    rest = step.live[_MAX_LIVE:]
    if rest:
        table.add_row(f"{len(rest)} more", "", "", _n(sum(tensor.bytes for tensor in rest)))
    if step.scratch_bytes:
        table.add_row("kernel scratch", "", "", _n(step.scratch_bytes))
    total = sum(tensor.bytes for tensor in step.live) + step.scratch_bytes
    if total <= step.bytes:
        return table
    return Group(table, Text(f"they overlap: {_n(total)} bytes in {_n(step.bytes)} bytes of the arena"))


def _largest_steps(steps: tuple[StepUse, ...]) -> Table:
    table = Table(title="largest working sets", title_justify="left")
    for column in ("operator", "output", "MACs", "bytes"):
        table.add_column(column, justify="right" if column in ("MACs", "bytes") else "left", overflow="fold")
    for step in sorted(steps, key=lambda each: -each.bytes)[:8]:
        table.add_row(f"{step.index} {step.operator}", _text(short_name(step.output)), _n(step.macs), _n(step.bytes))
    return table


def _budget(report: Report) -> Text:
    budget, after = report.budget or 0, report.after
    if report.within_budget:
        return Text(f"within the budget of {_n(budget)} bytes ({report.objective}){_price(report)}")
    need = after.arena_bytes if report.objective == "head" else after.required_for_target
    return _text(
        f"OVER the budget of {_n(budget)} bytes ({report.objective}) by {_n(need - budget)}: "
        f"{_n(need)} are needed; {_what_binds(report)}"
    )


def _price(report: Report) -> str:
    """What fitting costs in time and flash, where the graph was changed for it."""
    before, after, sizes = report.before, report.after, report.file_bytes
    if (after.macs, after.operators) == (before.macs, before.operators):
        return ""
    macs = percent((after.macs - before.macs) / max(1, before.macs))
    return (
        f", for {in_short(before.instructions, after.instructions)}, {macs} multiply-accumulates, "
        f"{after.operators - before.operators:+,} operators "
        f"and {sizes['after'] - sizes['before']:+,} bytes of file"
    )


def _what_binds(report: Report) -> str:
    """What would have to get smaller for the model to need less."""
    after, step = report.after, report.binding
    structures = after.temporaries_for_target
    if report.objective == "total" and structures > after.arena_bytes:
        tensors = counted(after.tensors, "tensor")
        return f"what binds are {_n(structures)} bytes of TFLM's planner, for {tensors}, not the head"
    tail = "" if report.objective == "head" else f" (the tail takes {_n(after.tail_for_target)} more)"
    if step is None:
        return f"no step binds: the model has no operator{tail}"
    name = f"operator {step.index} {step.operator} '{short_name(step.output)}'"
    return f"the step that binds is {name} with {_n(step.bytes)} of the head's {_n(after.arena_bytes)} bytes{tail}"


def _text(name: str, style: str = "") -> Text:
    """A name from the file, shown as it is; bytes that are not UTF-8 become question marks."""
    return Text(name.encode("utf-8", "replace").decode("utf-8"), style=style)


def _n(number: int | str) -> str:
    return f"{number:,}" if isinstance(number, int) else number


def _change(before: str, after: str) -> str:
    old, new = before.replace(",", ""), after.replace(",", "")
    if not (old.isdigit() and new.isdigit()) or old == new or int(old) == 0:
        return ""
    return f"{100 * (int(new) - int(old)) / int(old):+.1f} %"


def _short(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
