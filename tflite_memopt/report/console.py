"""Reports for people, as rich tables. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, OverflowMethod, RenderableType
from rich.table import Table
from rich.text import Text

from ..errors import printable
from ..evidence.equivalence.verdict import Verdict
from ..memory.figures import InterfaceTensor, MemoryUse, StepUse
from ..memory.reserve import LibraryNeed
from ..model.io.plan_label import PlanLabel
from ..options import options_text
from .loops import said_of_loop
from .model import Analysis, Comparison, FusionUse, MethodUse, Report, SearchUse
from .summary import advice_of, done_of, price_of, registered_by, shares_of, to_reserve, ways_of
from .words import counted, file_name, percent, short_name

_MAX_LIVE = 12
_MOST_LINES = 12
"""Lines without ``-v``, the first and the empty one below it included. Warnings are never left out."""
_MOST_ADVICE = 2
"""Options that are named without ``-v``."""
_MOST_NAMES = 3
"""Tensors that are named of a memory."""
_LONGEST_REASON = 300
"""Characters, of a verdict."""
_RUNNER_FACTS = {
    "head": "arena head, bytes",
    "tail": "tail, bytes",
    "smallest_arena": "smallest arena, bytes",
    "instructions": "instructions, all inputs",
}


def render_report(
    report: Report, output: str = "the result", tables: bool = False, commands: Sequence[str] = ()
) -> RenderableType:
    """Return the answer of ``optimize``: RAM, changes, price, limits and next steps.

    ``output`` names the file to flash. With ``tables`` nothing is shortened, and all figures follow. ``commands`` write
    the report's ways.
    """
    lines = _answer(report, output, [*ways_of(report, commands)], tables)
    answer = _labeled(report.summary.headline, report.tflm.runs, lines)
    return Group(answer, *(_tables(report) if tables else ()))


def _answer(report: Report, output: str, ways: list[tuple[str, str]], everything: bool) -> list[tuple[str, str]]:
    """Return lines with their labels. Without ``everything`` names, and some limits and advice, are left out."""
    summary = report.summary
    changes = summary.changes if everything else [done_of(report)]
    done = [*ways, *(("done", said) for said in changes), ("price", price_of(report, each_library=everything))]
    told: list[tuple[str, str]] = []
    if report.runner is not None:
        told += [("runner", said) for said in _runner_lines(report.runner)]
    told += [("interface", said) for said in interface_lines(report)]
    told += [("warning", warning) for warning in report.warnings]
    fits = report.tflm.runs and report.within_budget is not False
    flash = [("next", _to_flash(report, output))] if fits else []
    advice = advice_of(report)
    limits, shown = list(summary.limits), advice
    if not everything:
        room = max(1, _MOST_LINES - 3 - len(done) - len(told) - len(flash))
        limits = limits[: max(1, room - len(advice[:_MOST_ADVICE]))]
        shown = advice[: min(_MOST_ADVICE, room - len(limits))]
    lines = [*done, *(("limit", said) for said in limits), *told]
    lines += [*(("next", f"{each.option}: {each.text}") for each in shown), *flash]
    if not everything:
        left = len(advice) - len(shown)
        lines.append(("more", f"-v: all figures{f' and {left} more to try' if left else ''}"))
    return lines


def _to_flash(report: Report, output: str) -> str:
    """The file, and what the firmware has to reserve and to register for it."""
    size = f"{to_reserve(report)}, " if report.objective == "total" else ""
    return f"flash {output}: {size}{registered_by(report)}; codegen writes the C++"


def _runner_lines(measured: Mapping[str, Mapping[str, int | str]]) -> Iterator[str]:
    before, after = measured["before"], measured["after"]
    for key, label in _RUNNER_FACTS.items():
        if key in before or key in after:
            yield f"{label}: {_n(before.get(key, '-'))} -> {_n(after.get(key, '-'))}"


def interface_lines(report: Report) -> Iterator[str]:
    """Yield the inputs and outputs whose types changed, with the meaning of their integers."""
    for before, after in _interface_pairs(report):
        if before is None:
            role = "a state, zeros before the first call" if after.side == "input" else "the next state"
            yield f"{after.side} '{after.name}' is {role}"
        elif before != after:
            what, said = f"{after.side} '{short_name(after.name)}'", ""
            if before.shape != after.shape:
                said = f"{list(before.shape)} is now {list(after.shape)}"
                said += "" if after.layout is None else f", {after.layout}"
            if before.shape == after.shape or before.type != after.type:
                real = "" if after.scale is None else f"; real = {after.scale!r} * (value - {after.zero_point})"
                said += f"{'; ' if said else ''}was {before.type}, is {after.type}{real}"
            yield f"{what} {said}"


def _interface_pairs(report: Report) -> Iterator[tuple[InterfaceTensor | None, InterfaceTensor]]:
    """Yield each input and output of the result with the original's in its place; None for a state, which is new."""
    before, after = (
        [[each for each in report.interface[when] if each.side == side] for side in ("input", "output")]
        for when in ("before", "after")
    )
    for old, new in zip(before, after, strict=True):
        yield from ((old[at] if at < len(old) else None, each) for at, each in enumerate(new))


def _tables(report: Report) -> Iterator[RenderableType]:
    """Yield all figures: before and after, the verification, loops, memory reuse, libraries, the peak."""
    yield Text()
    yield _comparison(report)
    yield _verification(report)
    if report.interface["before"] != report.interface["after"]:
        yield _interface(report)
    yield from (Text(said_of_loop(use)) for use in report.loops)
    if report.sharing:
        yield _sharing(report)
    if len(report.libraries["after"]) > 1:
        yield _libraries(report.libraries["before"], report.libraries["after"])
    if report.after.peak is not None:
        yield _peak(report.after.peak, "at the peak, after")


def render_analysis(analysis: Analysis) -> RenderableType:
    """Return the tables of ``analyze``: the memory of one model, bounds, the peak."""
    table = table_with(Text(file_name(analysis.model)), "figure", ">now")
    for name, value in memory_rows(analysis.memory):
        if value is not None:  # TFLM's own figures need a run of it, which an analysis does without
            table.add_row(name, _n(value))
    for name, count in analysis.memory.instructions.items():
        table.add_row(f"instructions, estimated, {name}", _n(count))
    bounds, label = analysis.bounds, analysis.planned_for
    orders = (("this order", bounds.plan), ("any order", bounds.schedule), ("inputs/outputs", bounds.io))
    # A plan for other kernels may overwrite what these still read, and so go below any bound of theirs.
    for which, bound in () if label is not None and label.is_wrong_with(analysis.kernels) else orders:
        table.add_row(f"lower bound on the head, {which}, bytes", _n(bound))
    table.add_row("file, bytes", _n(analysis.file_bytes))
    summary = analysis.summary
    lines = [("limit", said) for said in summary.limits]
    lines += [("memory", said) for said in memory_lines(analysis)]
    lines += [("warning", said) for said in analysis.warnings]
    lines += [("next", f"{each.option}: {each.text}") for each in summary.advice]
    parts: list[RenderableType] = [_labeled(summary.headline, analysis.answer.judgement == "right", lines), Text()]
    if label is not None:
        parts.append(_planned_for(label, analysis))
    parts += [table, _largest_steps(analysis.steps)]
    parts += [Text(said_of_loop(use)) for use in analysis.loops]
    if analysis.memory.peak is not None:
        parts.append(_peak(analysis.memory.peak, "at the peak"))
    return Group(*parts)


def memory_lines(analysis: Analysis) -> Iterator[str]:
    """Yield what each memory holds of the plan of ``codegen --memory``, and the bytes that a run moves there."""
    whole = max(1, sum(each.moved for each in analysis.memories))
    for number, each in enumerate(analysis.memories):
        names = ", ".join(map(short_name, each.tensors[:_MOST_NAMES]))
        more = len(each.tensors) - _MOST_NAMES
        names += f" and {more} more" if more > 0 else ""
        structures = "TFLM's own structures" if each.has_structures else ""
        speed = "fastest" if number == 0 else "slower"
        yield (
            f"{each.name} ({speed}): {each.bytes:,} of {each.capacity:,} bytes: "
            f"{'; '.join(filter(None, (names, structures))) or 'nothing'}; a run moves {each.moved:,} bytes there "
            f"({100 * each.moved / whole:.0f} %)"
        )
    if analysis.memories:
        yield "codegen with the same --memory writes this plan"


def _labeled(headline: str, is_right: bool, lines: Sequence[tuple[str, str]]) -> Group:
    """The answer on top, in red where firmware does not compute it right; under it lines, each label once."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for at, (label, said) in enumerate(lines):
        repeated = at > 0 and lines[at - 1][0] == label
        style = "yellow" if label == "warning" else ""
        grid.add_row(Text("" if repeated else label, style="bold"), as_text(said, style=style))
    return Group(as_text(headline, style="bold" if is_right else "bold red"), Text(), grid)


def brief_of(report: Report, commands: Sequence[str] = ()) -> str:
    """Return the lines of ``optimize --quiet``: headline, price, operators to register, warnings."""
    lines = [
        report.summary.headline,
        *(f"{label}: {said}" if label else said for label, said in ways_of(report, commands)),
    ]
    lines += [f"price: {price_of(report)}", registered_by(report)]
    lines += [f"warning: {warning}" for warning in report.warnings]
    return "\n".join(map(printable, lines))


def render_verdicts(verdicts: dict[str, Verdict]) -> RenderableType:
    """Return the table of ``verify``: a row for each proof, for the interface, and for each runtime.

    Only runtimes have samples.
    """
    columns = ("check", "verdict", "samples", "largest difference", "values that differ", "reason")
    table = table_with("verification", *columns)
    for check, verdict in verdicts.items():
        gap = share = "-"
        if verdict.equal is not None:
            gap, share = _gap(verdict), f"{100 * verdict.differing_share:.3g} %"
        reason = verdict.reason or ""
        if len(reason) > _LONGEST_REASON:
            reason = reason[: _LONGEST_REASON - 1] + "…"
        table.add_row(check, _word(verdict), str(verdict.samples or "-"), gap, share, Text(reason))
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
    """Return the table of ``compare``, one row per method."""
    parts: list[RenderableType] = []
    orders, plans = comparison.schedulers, comparison.planners
    if orders:
        title = f"{file_name(comparison.model)}: order of {comparison.operators} operators, peak in bytes"
        parts.append(_methods(title, "peak", orders))
    if plans:
        parts.append(_methods(f"offsets in the order of {comparison.planned_order}, arena in bytes", "arena", plans))
    if comparison.shared_objects:
        parts.append(_methods("shared objects in that order, bytes of all", "objects", comparison.shared_objects))
    if comparison.fusion:
        title = f"msf-CNN on the first {comparison.fusion_layers} convolutions and pools, counted as in its paper"
        table = table_with(Text(title), "fused blocks", "counted", ">bytes", ">MACs", ">times", "layers fused")
        for use in comparison.fusion:
            if use.bytes is not None and use.macs is not None:
                times = f"{use.macs / (comparison.fusion[0].macs or 1):.2f}"
                ends = "with input and output" if use.ends_counted else "between the ends"
                table.add_row(_setting(use), ends, _n(use.bytes), _n(use.macs), times, ", ".join(use.blocks))
        parts.append(table)
    return Group(*parts)


def _setting(use: FusionUse) -> str:
    """Return the problem of msf-CNN and its limit."""
    if use.limit is None:
        return use.problem
    limit = f"in {use.limit:,.0f} bytes" if use.problem == "fewest MACs" else f"for {use.limit} times the MACs"
    return f"{use.problem} {limit}"


def _methods(title: str, figure: str, uses: tuple[MethodUse, ...]) -> Table:
    table = table_with(Text(title), "method", f">{figure}", ">lower bound", "proved", ">seconds", ">states")
    for use in uses:
        gap = 100 * (use.bytes / use.lower_bound - 1) if use.lower_bound else 0
        proved = "optimal" if use.optimal else f"gap {gap:.1f} %"
        states = "-" if use.states is None else _n(use.states)
        table.add_row(use.method, _n(use.bytes), _n(use.lower_bound), proved, f"{use.seconds:.3f}", states)
    return table


def _comparison(report: Report) -> Table:
    table = table_with(Text(file_name(report.model)), "figure", ">before", ">after", ">change")
    old, new = report.before.instructions, report.after.instructions
    for name, share in shares_of(report).items():
        table.add_row(f"instructions, estimated, {name}", _n(old[name]), _n(new[name]), percent(share))
    rows = zip(memory_rows(report.before), memory_rows(report.after), strict=True)
    for (label, before), (_, after) in rows:
        table.add_row(label, _n(before), _n(after), _change(before, after))
    bounds, files = report.bounds, report.file_bytes
    for label, bound in (("this order", bounds.plan), ("any order", bounds.schedule), ("inputs/outputs", bounds.io)):
        table.add_row(f"lower bound on the head, {label}, bytes", "", _n(bound), "")
    table.add_row("file, bytes", *map(_n, files.values()), _change(*files.values()))
    return table


def _interface(report: Report) -> Table:
    columns = ("side", "name", "shape", "was", "is", "scale", "zero point", ">bytes")
    table = table_with("interface: real = scale * (value - zero point)", *columns, overflow="fold")
    for before, after in _interface_pairs(report):
        scale, zero = ("-" if value is None else repr(value) for value in (after.scale, after.zero_point))
        shape = Text(str(list(after.shape)))
        was = "-" if before is None else before.type
        table.add_row(after.side, as_text(after.name), shape, was, after.type, scale, zero, _n(after.bytes))
    return table


def _sharing(report: Report) -> Table:
    title = "outputs that share bytes with their inputs, largest first"
    table = table_with(title, "operator", "kind", "input", "output", ">shared bytes")
    for use in report.sharing[:_MAX_LIVE]:
        table.add_row(
            use.operator, use.kind, Text(short_name(use.input)), Text(short_name(use.output)), _n(use.saved_bytes)
        )
    if len(report.sharing) > _MAX_LIVE:
        table.add_row(f"... and {len(report.sharing) - _MAX_LIVE} more", "", "", "", "")
    return table


def _verification(report: Report) -> RenderableType:
    order, plan = report.schedule, report.plan
    how = (
        f"made for {report.target or 'any target'} with {report.kernels} kernels\n"
        f"operator order ({order.method}): {_end(order)}\n"
        f"tensor offsets for this order ({plan.method}): {_end(plan)}"
    )
    if not report.equivalence:
        return Group(Text(how), Text("NOT verified (--no-verify)", style="yellow"))
    return Group(Text(how), render_verdicts(report.equivalence), Text(_basis(report)))


def _end(search: SearchUse) -> str:
    """Say how far the order or plan is from its bound, and why the search ended before a proof."""
    if search.optimal:
        return "proved optimal"
    share = 100 * search.gap_bytes / max(1, search.lower_bound)
    end = "ran out of time" if search.ended_by == "clock" else "reached its limit of work"
    return f"at most {counted(search.gap_bytes, 'byte')} ({share:.1f} %) above the lower bound; the search {end}"


def _basis(report: Report) -> str:
    """Say where the plan ran."""
    basis, tflm = report.basis, report.equivalence.get("tflm")
    where = "" if basis.executed_by == ("tflm",) else f" ({', '.join(basis.executed_by)})"
    kernels = "" if tflm is None or tflm.kernels is None else f"; kernels: {tflm.kernels}"
    if not basis.plan_executed:
        return f"the plan was NOT executed: {basis.reason}"
    return f"TFLM executed the plan{where}{kernels}"


def _libraries(before: Mapping[str, LibraryNeed], after: Mapping[str, LibraryNeed]) -> Table:
    title = "arena to reserve (32-bit), bytes, by the kernel library that the firmware links"
    table = table_with(title, "kernels", ">before", ">after", "measured")
    for name, need in after.items():
        measured = "yes" if need.measured else "no, counted from its source"
        table.add_row(name, _n(before[name].required), _n(need.required), measured)
    return table


def _planned_for(label: PlanLabel, analysis: Analysis) -> Text:
    said = f"the plan in the file was made for {label.target or 'any target'} with {label.kernels} kernels"
    same = (label.target, label.kernels) == (analysis.target, analysis.kernels)
    others = "and computes wrongly with others" if label.overlaps else "and is correct with any"
    counted_for = (
        "" if same else f"; counted here for {analysis.target or 'any target'} with {analysis.kernels} kernels"
    )
    made = f"; made by tflite-memopt {label.version} with {options_text(label.options)}" if label.version else ""
    return as_text(f"{said}, {'as counted here, ' if same else ''}{others}{counted_for}{made}")


def memory_rows(use: MemoryUse) -> Iterator[tuple[str, int | None]]:
    """Yield the figures of a model with their names; None for one that does not exist."""
    guess = "" if use.required_is_exact else " (estimate)"
    yield "operators", use.operators
    yield "multiply-accumulates", use.macs
    yield "weights read in a run, bytes", use.weights_read
    yield "peak working set, bytes", use.peak_bytes
    yield "arena head, planned, bytes", use.arena_bytes
    for part in ("head", "tail", "total"):
        bits = use.tflm.get("pointer_bits", 64)
        measured = use.tflm.get(part)
        yield f"TFLM measured {part} ({bits}-bit), bytes", measured if isinstance(measured, int) else None
    if "target" in use.required_bytes:
        yield f"arena to reserve on the target{guess}, bytes", use.required_bytes["target"]
    if "table" in use.required_bytes:
        yield f"the same with codegen's planner{guess}, bytes", use.required_bytes["table"]
    yield f"arena to reserve, 32-bit{guess}, bytes", use.required_bytes["32"]
    yield f"arena to reserve, 64-bit{guess}, bytes", use.required_bytes["64"]


def _peak(step: StepUse, when: str) -> RenderableType:
    title = f"{when}: operator {step.index} {step.operator} '{short_name(step.output)}', {_n(step.bytes)} bytes"
    table = table_with(as_text(title), "live tensor", "shape", "type", ">bytes", overflow="fold")
    for tensor in step.live[:_MAX_LIVE]:
        table.add_row(as_text(short_name(tensor.name)), Text(str(list(tensor.shape))), tensor.type, _n(tensor.bytes))
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
    table = table_with("largest working sets", "operator", "output", ">MACs", ">bytes", overflow="fold")
    for step in sorted(steps, key=lambda each: -each.bytes)[:8]:
        table.add_row(
            as_text(f"{step.index} {step.operator}"), as_text(short_name(step.output)), _n(step.macs), _n(step.bytes)
        )
    return table


def table_with(title: str | Text, *columns: str, overflow: OverflowMethod = "ellipsis") -> Table:
    """An empty table; columns whose name starts with ``>`` are those of numbers, and stand to the right."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column[:1] == ">" else "left", overflow=overflow)
    return table


def as_text(name: str, style: str = "") -> Text:
    """A name from the file, as a terminal takes it."""
    return Text(printable(name), style=style)


def _n(number: int | str | None) -> str:
    return "-" if number is None else f"{number:,}" if isinstance(number, int) else number


def _change(before: int | None, after: int | None) -> str:
    if before is None or after is None or before in (0, after):
        return ""
    return f"{100 * (after - before) / before:+.1f} %"
