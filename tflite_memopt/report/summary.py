"""A report in sentences: the answer in one line, what was done and its price, what limits it, what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from ..errors import printable
from ..evidence.equivalence.verdict import Verdict
from ..kernels.as_it_came import said_of_file, said_of_wrong
from ..kernels.faults import FORGETS
from ..kernels.mend import CLAMP, NAMES, PADDING
from ..kernels.support import said_of
from ..memory.figures import Bounds, MemoryUse, ReuseInForce
from ..memory.work import slowdowns
from ..model.ir.change import (
    BOUNDARY,
    CHANNELS_LAST,
    DEAD_CHANNELS,
    INFERRED_SHAPES,
    ONE_HOP,
    STATIC_LISTS,
    UNCALLED,
    RewriteUse,
)
from ..model.ir.check import NPUS
from .answer import Answer, DeviceUse
from .model import Advice, Analysis, ProofUse, Report, SlideUse, Summary, Way
from .words import by_library, change_in_percent, counted, in_short, in_words, over_libraries, percent, short_name

_LIBRARIES = {"cmsis-nn": "CMSIS-NN", "esp-nn": "esp-nn"}
_RUNTIMES = {"tflm": "TFLM's reference kernels", "litert": "LiteRT", "runner": "your runner"}
_STORED = "the memory plan is stored in the file, where TFLM reads it"
_MOST_CHANGES = 6
_MOST_NAMES = 3
_LINKED = {"reference": "TFLM's own kernels"}
_IF_IT_COULD = "If it could: "
_MENDS = "; optimize fixes that"
_WITH_ANY = "COMPUTES WRONGLY with TFLM, whatever kernels it links"


def summary_of(report: Report, advice: Sequence[Advice]) -> Summary:
    """Return the sentences of an ``optimize`` report, given the advice."""
    limits = (*limits_of(report.after, report.bounds, report.objective == "head"), *_limits_of_search(report))
    return Summary(printable(headline(report)), tuple(_changes(report)), limits, tuple(advice))


def summary_of_analysis(analysis: Analysis, advice: tuple[Advice, ...]) -> Summary:
    """Return the sentences of an ``analyze`` report."""
    answer = analysis.answer
    fit, is_exact = said_of_fit(answer, analysis.device), analysis.memory.required_is_exact
    estimate = "" if is_exact else " (an estimate: an operator is not in the kernel tables)"
    is_said = fit.startswith("needs") and not answer.most
    size = f"RAM: {fit}" if is_said else joined(f"RAM {answer.reserve:,} bytes{_of_library(answer)}{estimate}", fit)
    first = joined(size, *_notes(answer, analysis.target))
    command, text = "tflite-memopt optimize", ""
    if analysis.mends:
        first = f"{wrong_in_words(analysis)}. Once fixed: {first}"
        text = "makes a model that TFLM can load and read, and proves it equal"
    elif answer.judgement == "cannot run":
        first = f"{wrong_in_words(analysis)}. {_IF_IT_COULD}RAM {answer.reserve:,} bytes"
    elif answer.judgement != "right":
        first = f"{wrong_in_words(analysis)}. {first}"
        if answer.judgement == "faulty kernels":
            text = "rewrites such an operator so that the kernels compute it correctly, if that is possible"
    elif any(step.operator in NPUS for step in analysis.steps):
        command += " --no-verify"
        text = "searches for a model that needs less; only the chip can run it, and verify proves it equal"
    elif not is_exact:
        command += " --no-verify"
        text = "searches for a model that needs less; verify --runner runs it on a TFLM that has its kernels"
    elif analysis.planned_for is None:
        text = "searches for a model that needs less, and verifies that it computes the same"
    advice = (*advice, Advice(command, text)) if text else advice
    return Summary(printable(first), (), limits_of(analysis.memory, analysis.bounds, False), advice)


def wrong_in_words(analysis: Analysis) -> str:
    """Say why firmware does not compute what the file says; empty where it does."""
    if analysis.mends:
        return f"{said_of_file(analysis.as_it_came, mended=True)}{_MENDS}"
    target, label = analysis.target, analysis.planned_for
    where = f"{analysis.kernels} kernels{'' if target is None else f' ({target})'}"
    match analysis.answer.judgement:
        case "wrong kernels":
            assert label is not None
            named = analysis.kernels if target is None else target if analysis.device is None else analysis.device.name
            return (
                f"COMPUTES WRONGLY with {where}: the plan in the file is for {label.kernels} kernels; optimize the "
                f"original with --{'kernels' if target is None else 'target'} {named}"
            )
        case "wrong plan":
            return f"COMPUTES WRONGLY with {where}: the plan in the file is not of this graph; optimize it again"
        case "faulty kernels" if analysis.as_it_came.wrong:
            return f"{_WITH_ANY}: {said_of_wrong(analysis.as_it_came.wrong)}"
        case "faulty kernels":
            wrong = [fault for fault in analysis.faults if fault.effect != FORGETS]
            met = wrong[0]
            does = "gets wrong values" if met.effect == "wrong values" else met.effect
            right = f"; right with {analysis.right_with}" if analysis.right_with else ""
            return (
                f"COMPUTES WRONGLY with {where}: {met.operator} '{short_name(met.output)}' {does} "
                f"({met.fault}: {met.releases}){right}{_MENDS if all(fault.mends for fault in wrong) else ''}"
            )
        case "cannot run":
            return said_of(analysis.tflm)
    return ""


def headline(report: Report) -> str:
    """Return one line: RAM before and after, how that was verified, and how much of the device's RAM it is.

    Where TFLM cannot run the model, or does not run the original rightly, that comes first.
    """
    is_head, answer = report.objective == "head", report.answer
    before, after = (memory.bytes_for(report.objective) for memory in (report.before, report.after))
    kept = "no change: keep the original" if keeps_original(report) else "no change"
    what = "head of the arena" if is_head else "RAM"
    price = in_short(shares_of(report))
    price += "" if report.calls == 1 else ", one step per call"
    price += "" if report.slide is None else _of_hops(report.slide)
    library = "" if is_head else _of_library(answer)
    sizes = sizes_of(report, before, after, kept)
    sentence = f"{mended_first(report)}{what} {sizes}{library} at {price}, {_verified(report)}"
    if not report.tflm.runs:
        return f"{said_of(report.tflm)}. {_IF_IT_COULD}{sentence}"
    most = max(each.bytes_for(report.objective) for each in report.libraries["before"].values())
    was = report.budget is not None and most <= report.budget
    if is_head:
        return joined(sentence, said_of_fit(answer, report.device, was))
    return joined(sentence, *sentences_of(answer, report.device, report.target, was))


def keeps_original(report: Report) -> bool:
    """Return whether firmware keeps the original: the result is no smaller, and it runs rightly with any kernels."""
    return report.saves_nothing and report.as_it_came.makes == "runs" and report.planned_for is None


def mended_first(report: Report) -> str:
    """Return the first words of an answer where TFLM does not run the original rightly; empty where it does."""
    came = report.as_it_came
    if came.makes == "runs" or not report.tflm.runs:
        return ""
    if came.makes == "cannot run":
        return "TFLM cannot load the file as it came, and loads the result: "
    if came.constants_behind:
        return "TFLM does not read the weights of the file as it came, and reads those of the result: "
    if {fault.fault for fault in came.wrong} & {fault.fault for fault in report.faults}:
        return "TFLM computes the file otherwise, and the result as well: "
    on_tflm = report.equivalence.get("tflm")
    if on_tflm is not None and not on_tflm.equal:
        return "TFLM computes the file otherwise as it came, and the result is mended: "
    return "TFLM computes the file otherwise as it came, and the result rightly: "


def sizes_of(report: Report, before: int, after: int, kept: str = "no change") -> str:
    """Say how many bytes the result takes, and the original, where TFLM takes any for it that could be named."""
    if report.as_it_came.has_size or not report.tflm.runs:
        return f"{before:,} -> {after:,} bytes ({change_in_percent(before, after) or kept})"
    return f"{after:,} bytes{'' if before == after else f', {before:,} without other changes,'}"


def _of_hops(slide: SlideUse) -> str:
    """Say what a call takes, and what it is compared with."""
    rows = counted(slide.hop, "row")
    return f" of the whole window, {rows} of {slide.window} per call, right from call {slide.calls} on"


def _of_library(answer: Answer) -> str:
    """Name the library that the number is for, where firmware may link others."""
    return f" with {_LINKED.get(answer.library, f'{answer.library} kernels')}" if answer.most else ""


def _notes(answer: Answer, target: str | None) -> Iterator[str]:
    """Yield what else holds of the size: with the library that needs the most, and with codegen's planner."""
    if answer.is_estimate:
        yield "an estimate: these kernels were read from their source, never measured"
    for name, need in answer.most.items():
        before = answer.more_than_before.get(name)
        more = "" if before is None else f", more than the {before[0]:,} of the original"
        yield f"{need:,} with {name}{more}{'' if target else ': pass --target'}"
    is_said = answer.fit is not None and answer.fit.planner == "table"
    if answer.table is not None and answer.table < answer.reserve and not is_said:
        yield f"{answer.table:,} with codegen's planner"


def said_of_fit(answer: Answer, device: DeviceUse | None, was: bool = False) -> str:
    """Say whether the size is within the budget, or the device's RAM; empty without either.

    ``was``: whether the original is within the budget.
    """
    fit = answer.fit
    if fit is None:
        return ""
    limit = in_words(fit.limit) if fit.is_budget or device is None else _ram_of(device)
    library = f" with {fit.library}" if answer.most else ""
    if not fit.fits:
        return f"DOES NOT FIT {limit}{library}: {counted(-fit.spare, 'byte')} too many"
    if fit.planner == "table":
        return f"fits {limit} with codegen's planner only ({fit.limit - fit.spare:,} bytes)"
    if not fit.is_budget:
        return f"needs {fit.limit - fit.spare:,} of {limit}{library}"
    already = ", as it did before," if was else ""
    any_kernels = " with any kernels" if answer.most else ""
    return f"fits {limit}{any_kernels}{already} with {counted(fit.spare, 'byte')} to spare"


def joined(*parts: str) -> str:
    """Return the parts of a line that are not empty."""
    return "; ".join(filter(None, parts))


def sentences_of(answer: Answer, device: DeviceUse | None, target: str | None, was: bool = False) -> Iterator[str]:
    """Yield what follows the size in a first line: whether it fits, and the size in other ways.

    ``was``: whether the original is within the budget.
    """
    yield said_of_fit(answer, device, was)
    yield from _notes(answer, target)


def _verified(report: Report) -> str:
    has_run = any(verdict.equal for verdict in report.equivalence.values())
    return f"{_proved(report) if has_run else ''}{verified_in_words(report)}"


def verified_in_words(report: Report) -> str:
    """Say which runtimes ran both models, on how many inputs."""
    if not report.equivalence:
        return "NOT verified (--no-verify)"
    agreeing = [name for name, verdict in report.equivalence.items() if verdict.equal]
    where = " and ".join(f"{_RUNTIMES.get(name, name)}{_not_run(report, name)}" for name in sorted(agreeing))
    if not agreeing:
        return "NOT verified: no runtime could run both models"
    inputs = max(report.equivalence[name].samples for name in agreeing)
    plan = "" if report.basis.plan_executed else ", the plan itself was not run"
    if report.slide is not None:
        return f"{_word(report.equivalence)} over {counted(inputs, 'hop')} ({where}{plan})"
    runs = counted(inputs, "input") if report.calls == 1 else f"{counted(inputs, 'sequence')} of {report.calls} steps"
    return f"{_word(report.equivalence)} on {runs} ({where}{plan})"


def proof_of(report: Report) -> ProofUse | None:
    """Return the proof that a result computes what the original does: of its calls, where it is called in steps."""
    is_whole = report.calls == 1 and report.slide is None
    return report.proofs.get("result" if is_whole else "step")


def _proved(report: Report) -> str:
    """Say what holds for all inputs; nothing where a rewrite approximates, which no proof covers."""
    proof = proof_of(report)
    if proof is None or any(use.exactness == "approximates" for use in report.rewrites):
        return ""
    if not proof.is_proved:
        return "not proved, "
    how = "" if proof.status == "proved" else " as real polynomials"
    limit = " for finite values that do not overflow" if proof.finite_only else ""
    return f"proved for all inputs{how}{limit} and "


def _not_run(report: Report, runtime: str) -> str:
    """Name the kernel library that the result is for, where another one ran."""
    library = next((said for name, said in _LIBRARIES.items() if report.kernels.startswith(name)), None)
    return f", not {library}" if runtime == "tflm" and library is not None else ""


def _word(verdicts: Mapping[str, Verdict]) -> str:
    exactness = {verdict.exactness for verdict in verdicts.values() if verdict.equal}
    if "approximates" in exactness:
        return "outputs APPROXIMATE, compared"
    return "verified equal within a stated tolerance" if "reassociates" in exactness else "verified bit-exact"


def _ram_of(device: DeviceUse) -> str:
    """Say how much RAM a device has for an arena."""
    of_device = f"the {device.name}'s {in_words(device.ram_bytes)}"
    if device.left_bytes is None:
        return of_device
    return f"the {in_words(device.left_bytes)} that {device.framework} leaves of {of_device}"


def _changes(report: Report) -> Iterator[str]:
    if not report.rewrites:
        yield "the operators are the same as before"
    for use in report.rewrites[:_MOST_CHANGES]:
        yield _rewrite(use)
    if len(report.rewrites) > _MOST_CHANGES:
        yield f"{counted(len(report.rewrites) - _MOST_CHANGES, 'more rewrite')}: -v shows all"
    yield _STORED
    if report.sharing:
        yield f"memory reuse: {', '.join(_sharing(report.sharing))}"
    saved = report.before.bytes_for(report.objective) - report.after.bytes_for(report.objective)
    if saved > 0:
        yield f"all of this together: {counted(saved, 'byte')} less"


def ways_of(report: Report, commands: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield what the model needs in parts and fed: a label, a line, and the command of a way that fits, or nothing."""
    needs = [report.after.required_for_target]
    for way, command in zip_longest(report.ways, commands, fillvalue=""):
        assert isinstance(way, Way)
        label = next(label for flag, label in _WAYS.items() if way.flags.startswith(flag))
        if way.need is None:
            yield label, f"not possible: {way.reason}", ""
            continue
        needs.append(way.need)
        verdict = "fits" if way.fits else "does not fit either"
        line = f"{way.need:,} bytes at {percent(way.slowdown or 0.0)} run time: {verdict}"
        yield label, line, str(command) if way.fits else ""
    if report.ways and not any(way.fits for way in report.ways):
        yield "", f"nothing that was tried fits; the smallest needs {min(needs):,} bytes", ""


_WAYS = {"--feed": "row by row", "--parts": "in parts", "--changes": "one file"}
"""Labels of ways by the first of their flags."""


def advice_of(report: Report) -> list[Advice]:
    """Return the advice without parts and rows, if the search has already answered what these would bring."""
    known = ("--parts", "--feed") if report.ways else ()
    return [advised for advised in report.summary.advice if not advised.option.startswith(known)]


def done_of(report: Report) -> str:
    """Return the changes in one sentence of counts, without names."""
    mends = list(filter(None, (said_of_file(report.as_it_came, mended=True),))) if report.tflm.runs else []
    regions = [use for use in report.rewrites if use.stripes is not None]
    dead = [use for use in report.rewrites if use.rule.startswith(DEAD_CHANNELS)]
    apart = [use for use in report.rewrites if use.rule in NAMES]
    others = len(report.rewrites) - len(regions) - len(dead) - len(apart)
    if apart:
        does = " and ".join(_APART[rule] for rule in NAMES if any(use.rule == rule for use in apart))
        mends.append(f"{counted(len(apart), 'operator')} that kernels compute wrongly now right: {does}")
    parts = [*mends, *(f"removed {use.rule.partition(': ')[2]} that nothing uses" for use in dead)]
    if regions:
        loops = f", {counted(len(report.loops), 'loop')}" if report.loops else ""
        size = sum(len(use.operators) for use in regions)
        parts.append(f"{counted(size, 'operator')} now {'runs' if size == 1 else 'run'} a few rows at a time{loops}")
    if others:
        parts.append(counted(others, "other rewrite" if parts else "rewrite"))
    return "; ".join((*parts, *_sharing(report.sharing), _STORED))


_APART: Mapping[str, str] = {PADDING: "padded by a PAD", CLAMP: "rescaled by a RELU"}


def to_reserve(report: Report) -> str:
    """Say how many bytes firmware reserves: with TFLM as it comes, and with codegen's planner; or with any kernels."""
    answer = report.answer
    estimate = "" if report.after.required_is_exact else " (an estimate)"
    if answer.most:
        ((library, most),) = answer.most.items()
        return f"reserve {answer.reserve:,} bytes{_of_library(answer)}{estimate}, {most:,} with {library}"
    table = f" ({answer.table:,} with codegen's planner)" if answer.table not in (None, answer.reserve) else ""
    return f"reserve {answer.reserve:,} bytes{estimate}{table}"


def registered_by(report: Report) -> str:
    """Name the operators that the firmware registers for the result; those that the original does without are new."""
    kinds = sorted({step.operator for step in report.arena["after"].steps})
    return f"register {', '.join(f'{kind} (new)' if kind in report.operators_added else kind for kind in kinds)}"


def _sharing(uses: Sequence[ReuseInForce]) -> Iterator[str]:
    views = sum(use.kind == "view" for use in uses)
    over = len(uses) - views
    if views:
        yield f"{counted(views, 'output')} {'is a view of its input' if views == 1 else 'are views of their inputs'}"
    if over:
        yield f"{counted(over, 'output')} {'overwrites an input' if over == 1 else 'overwrite inputs'}"


def shares_of(report: Report) -> dict[str, float]:
    """Return the added run time by kernel library, the slowest first."""
    return slowdowns(report.before.instructions, report.after.instructions)


_PLAIN: Mapping[str, str] = {
    "dead_tensors": "removed tensors and constants that nothing reads",
    "dead_operators": "removed operators whose results nothing reads",
    "share_constants": "equal constants are stored once",
    "steps_in_a_loop": "unrolled steps run as a loop",
    "channel_tiles": "computes some channels at a time",
    "sequences_along_h": "the sequence lies along the height of an image, so that it can run in stripes",
    "turned_images": "rows and columns of an image change places, so that it can run in stripes along its columns",
    BOUNDARY: "the model takes and returns integers",
    CHANNELS_LAST: "the model takes and returns its channels last",
    UNCALLED: "removed subgraphs that nothing calls",
    INFERRED_SHAPES: "corrected wrong shapes in the file",
    ONE_HOP: "a call takes one hop of the window, and keeps the rows that windows share",
    STATIC_LISTS: "loops set the items of lists in place",
}
_FORM = re.compile(r" \(.*\)|clamped |masked ")  # of stripes: -v has these words
_OTHER = "simpler operators that compute the same"


def _rewrite(use: RewriteUse) -> str:
    """Return a change in plain words, with the operators that it concerns."""
    names = [short_name(name) for name in use.operators]
    if use.stripes is not None:
        where = f"{names[0]} runs" if len(names) == 1 else f"{len(names)} operators, {names[0]} to {names[-1]}, run"
        return f"{where} a few rows at a time, in {_FORM.sub('', use.stripes)}"
    name, _, rest = use.rule.partition(": ")
    words = f"removed {rest} that nothing uses" if name == DEAD_CHANNELS else _OTHER
    words = next((said for rule, said in _PLAIN.items() if rule in name), words)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{words} ({', '.join(names[:_MOST_NAMES])}{more})"


def price_of(report: Report, each_library: bool = True) -> str:
    """Return the three parts of the price: run time, flash and the TFLM that the firmware needs.

    The run time is that with each kernel library, or the range of them.
    """
    sizes = report.file_bytes
    run_time = by_library if each_library else over_libraries
    mends = report.slowdown_of_mends
    of_it = f", {percent(mends)} of it for what kernels compute wrongly otherwise" if mends else ""
    parts = [run_time(shares_of(report), report.kernels) + of_it]
    file, kernels = sizes["after"] - sizes["before"], flash_in_words(report.kernel_bytes)
    parts.append(f"flash {file:+,} bytes of file{f', {kernels}' if kernels else ''}")
    if report.tflm_since is not None:
        parts.append(f"TFLM of {report.tflm_since} or later")
    return "; ".join(parts)


def flash_in_words(kernels: Mapping[str, int | None]) -> str:
    """Return the code of new kernels in words, on Cortex-M4; empty without any."""
    measured = sum(size for size in kernels.values() if size is not None)
    unknown = [kind for kind, size in kernels.items() if size is None]
    known = ", ".join(kind for kind in kernels if kind not in unknown)
    parts = [f"about {measured:,} bytes of new kernels ({known})"] if known else []
    return ", ".join((*parts, *(f"the kernel of {kind} (not measured)" for kind in unknown)))


def _limits_of_search(report: Report) -> Iterator[str]:
    """Yield the limit on computation that binds; nothing where the result beats the bound of the search."""
    need, least = report.after.bytes_for(report.objective), report.least_as_one
    if report.budget is not None and report.budget < least:
        over = counted(least - report.budget, "byte")
        yield (
            f"one file does not fit {in_words(report.budget)}: the inputs or outputs (up to {report.bounds.io:,} "
            f"bytes) and TFLM's structures alone take {least:,} bytes at least, {over} too many"
        )
    elif report.least_in_stripes is not None and need == report.least_in_stripes:
        yield f"the search for stripes finds no candidate below {need:,} bytes within the limits on computation"


def _share(memory: MemoryUse, is_head: bool) -> str:
    head = f"{memory.arena_bytes:,} bytes for tensors (the head)"
    return head if is_head else f"{head}, {memory.tail_for_target:,} for TFLM's own structures (the tail)"


def limits_of(memory: MemoryUse, bounds: Bounds, is_head: bool) -> tuple[str, ...]:
    """Return what the size of the arena consists of, the largest part first."""
    lines = [_share(memory, is_head)]
    temporaries = memory.temporaries_for_target
    if not is_head and temporaries > memory.arena_bytes:
        lines.append(
            f"while it loads the model, TFLM's planner needs {temporaries:,} bytes for its "
            f"{counted(memory.tensors, 'tensor')}: more than the head; fewer tensors help, "
            "or a plan that the firmware carries (codegen --planner table)"
        )
        return tuple(lines)
    if memory.arena_bytes <= bounds.io:
        lines.append("the head is as small as the inputs or outputs: only a smaller interface helps")
    elif memory.peak is not None:
        step = memory.peak
        lines.append(
            f"operator {step.index} {step.operator} '{short_name(step.output)}' needs {step.bytes:,} bytes at once "
            f"(inputs or outputs: {bounds.io:,})"
        )
        if memory.arena_bytes > step.bytes:
            lines.append(f"{memory.arena_bytes - step.bytes:,} bytes of the head are gaps between tensors")
    return tuple(lines)
