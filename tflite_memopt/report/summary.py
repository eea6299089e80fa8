"""A report in sentences: the answer in one line, what was done and its price, what limits it, what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from ..equivalence.verdict import Verdict
from ..errors import printable
from ..ir.change import BOUNDARY, DEAD_CHANNELS, INFERRED_SHAPES, STATIC_LISTS, UNCALLED, RewriteUse
from ..kernels.support import TflmSupport, said_of
from ..memory.figures import Bounds, LibraryNeed, MemoryUse, ReuseInForce
from .model import Advice, DeviceUse, ProofUse, Report, Summary, Way
from .words import (
    by_library,
    change_in_percent,
    counted,
    in_short,
    in_words,
    over_libraries,
    percent,
    short_name,
)

_LIBRARIES = {"cmsis-nn": "CMSIS-NN", "esp-nn": "esp-nn"}
_RUNTIMES = {
    "tflm": "TFLM's reference kernels",
    "litert": "LiteRT",
    "runner": "your runner",
}
_STORED = "the memory plan is stored in the file, where TFLM reads it"
_MOST_CHANGES = 6
_MOST_NAMES = 3
_CLEARLY_MORE = 1.1
"""A library that needs this many times as much is named in the first line."""
_IF_IT_COULD = "If it could, it would need"
_MENDED = "TFLM cannot load this file as it is, and optimize fixes that"


def summary_of(report: Report, advice: Sequence[Advice]) -> Summary:
    """The sentences of an ``optimize`` report, given the advice."""
    limits = (*limits_of(report.after, report.bounds, report.objective == "head"), *_limits_of_search(report))
    return Summary(printable(headline(report)), tuple(_changes(report)), limits, tuple(advice))


def summary_of_analysis(
    memory: MemoryUse,
    bounds: Bounds,
    libraries: Mapping[str, LibraryNeed],
    support: TflmSupport,
    advice: tuple[Advice, ...] = (),
    is_ours: bool = False,
    has_target: bool = False,
    device: DeviceUse | None = None,
    mends: bool = False,
) -> Summary:
    """The sentences of an ``analyze`` report. ``is_ours``: this tool has optimized the model already.

    ``has_target``: whether a target is named; ``device``: the chip or board that was. ``mends``: whether figures are
    those of the model rewritten so that TFLM can run it.
    """
    need = memory.required_for_target
    fit = _fit(need, libraries, has_target, device)
    says_need = device is not None and need <= device.ram_bytes
    first = f"RAM: {fit}" if says_need else _joined(f"RAM {need:,} bytes", fit)
    if not support.runs:
        first = f"{said_of(support)}. {_IF_IT_COULD} {need:,} bytes of RAM"
    if mends:
        first = f"{said_of(support, _MENDED)}. Once fixed, it needs {need:,} bytes of RAM"
        advice = (*advice, Advice("tflite-memopt optimize", "makes a model that TFLM can load, and proves it equal"))
    elif support.runs and not is_ours:
        text = "makes a model that needs less, and verifies that it computes the same"
        advice = (*advice, Advice("tflite-memopt optimize", text))
    return Summary(printable(first), (), limits_of(memory, bounds, False), advice)


def headline(report: Report) -> str:
    """One line: RAM before and after, how that was verified, and how much of the device's RAM it is.

    Where TFLM cannot run the model, that comes first.
    """
    is_head = report.objective == "head"
    before, after = (
        memory.arena_bytes if is_head else memory.required_for_target for memory in (report.before, report.after)
    )
    change = f" ({change_in_percent(before, after) or 'no change'})"
    what = "head of the arena" if is_head else "RAM"
    price = in_short(report.before.instructions, report.after.instructions)
    if not report.tflm.runs:
        figures = f"{before:,} -> {after:,} bytes of {what}{change} at {price}, {_verified(report)}"
        return f"{said_of(report.tflm)}. {_IF_IT_COULD} {figures}"
    price += "" if report.calls == 1 else ", one step per call"
    mends = "" if report.mended is None else "; TFLM could not load the file before"
    return _joined(
        f"{what} {before:,} -> {after:,} bytes{change} at {price}, {_verified(report)}{mends}", _fit_of(report, after)
    )


def _joined(first: str, then: str) -> str:
    return f"{first}; {then}" if then else first


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
    given = counted(inputs, "input") if report.calls == 1 else f"{counted(inputs, 'sequence')} of {report.calls} steps"
    return f"{_word(report.equivalence)} on {given} ({where}{plan})"


def proof_of(report: Report) -> ProofUse | None:
    """Return the proof that a result computes what the original does; with ``--step``, of its calls."""
    return report.proofs.get("result" if report.calls == 1 else "step")


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


def _fit_of(report: Report, need: int) -> str:
    if report.budget is None:
        libraries = {} if report.objective == "head" else report.libraries["after"]
        return _fit(need, libraries, report.target is not None, report.device)
    size = in_words(report.budget)
    if report.within_budget:
        already = ", as it did before," if needed_of(report, report.before) <= report.budget else ""
        return f"fits {size}{already} with {counted(report.budget - need, 'byte')} to spare"
    return f"DOES NOT FIT {size}: {counted(need - report.budget, 'byte')} too many"


def _fit(need: int, libraries: Mapping[str, LibraryNeed], has_target: bool, device: DeviceUse | None) -> str:
    """Say how much of the device's RAM that is, and which kernel libraries need clearly more; may be empty."""
    said = []
    if device is not None:
        of = f"the {device.name}'s {in_words(device.ram_bytes)}"
        over = need - device.ram_bytes
        said.append(f"needs {need:,} of {of}" if over <= 0 else f"DOES NOT FIT {of}: {counted(over, 'byte')} too many")
    more = {name: each.required for name, each in libraries.items() if each.required > _CLEARLY_MORE * need}
    if more:
        others = ", ".join(f"{each:,} bytes with {name}" for name, each in sorted(more.items(), key=lambda e: -e[1]))
        said.append(f"it needs {others}{'' if has_target else ': pass --target'}")
    return "; ".join(said)


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
    saved = needed_of(report, report.before) - needed_of(report, report.after)
    if saved > 0:
        yield f"all of this together: {counted(saved, 'byte')} less"
    yield f"the price: {price_of(report)}"


def ways_of(report: Report, commands: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what the model needs in parts and fed, with the command of one that fits; labels and lines."""
    for way, command in zip_longest(report.ways, commands, fillvalue=""):
        assert isinstance(way, Way)
        label = "row by row" if way.flags.startswith("--feed") else "in parts"
        if way.need is None:
            yield label, f"not possible: {way.reason}"
            continue
        verdict = "fits" if way.fits else "does not fit either"
        yield label, f"{way.need:,} bytes at {percent(way.slowdown or 0.0)} run time: {verdict}"
        if way.fits and command:
            yield "", command
    if report.ways and not any(way.fits for way in report.ways):
        least = min((way.need for way in report.ways if way.need is not None), default=report.after.required_for_target)
        yield "", f"no way that was searched fits; the least is {min(least, report.after.required_for_target):,} bytes"


def advice_of(report: Report) -> list[Advice]:
    """Return the advice without parts and rows, if the search has already answered what these would bring."""
    known = ("--parts", "--feed") if report.ways else ()
    return [each for each in report.summary.advice if not each.option.startswith(known)]


def done_of(report: Report) -> str:
    """Return the changes in one sentence of counts, without names."""
    mends = [] if report.mended is None else [said_of(report.mended, "TFLM could not load the file before")]
    regions = [use for use in report.rewrites if use.stripes is not None]
    dead = [use for use in report.rewrites if use.rule.startswith(DEAD_CHANNELS)]
    others = len(report.rewrites) - len(regions) - len(dead)
    parts = [*mends, *(f"no weight reads {use.rule.partition(': ')[2]}: removed" for use in dead)]
    if regions:
        loops = f", {counted(len(report.loops), 'loop')}" if report.loops else ""
        size = sum(len(use.operators) for use in regions)
        parts.append(f"{counted(size, 'operator')} now {'runs' if size == 1 else 'run'} a few rows at a time{loops}")
    if others:
        parts.append(counted(others, "other rewrite" if parts else "rewrite"))
    return "; ".join((*parts, *_sharing(report.sharing), _STORED))


def registered_by(report: Report) -> str:
    """The operators that the firmware registers to run the result; those that the original does without are new."""
    kinds = sorted({step.operator for step in report.arena["after"].steps})
    return f"register {', '.join(f'{kind} (new)' if kind in report.operators_added else kind for kind in kinds)}"


def _sharing(uses: Sequence[ReuseInForce]) -> Iterator[str]:
    views = sum(use.kind == "view" for use in uses)
    over = len(uses) - views
    if views:
        yield f"{counted(views, 'output')} {'is a view of its input' if views == 1 else 'are views of their inputs'}"
    if over:
        yield f"{counted(over, 'output')} {'overwrites an input' if over == 1 else 'overwrite inputs'}"


def needed_of(report: Report, memory: MemoryUse) -> int:
    return memory.arena_bytes if report.objective == "head" else memory.required_for_target


_PLAIN: Mapping[str, str] = {
    "dead_tensors": "nothing reads these tensors and constants: removed",
    "dead_operators": "nothing reads the results of these operators: removed",
    "share_constants": "equal constants are stored once",
    "steps_in_a_loop": "unrolled steps run as a loop",
    "channel_tiles": "some channels at a time",
    "sequences_along_h": "the sequence lies along the height of an image, so that it can run in stripes",
    BOUNDARY: "the model takes and gives integers",
    UNCALLED: "nothing calls these subgraphs: removed",
    INFERRED_SHAPES: "shapes in the file are wrong: corrected",
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
    words = f"no weight reads {rest}: removed" if name == DEAD_CHANNELS else _OTHER
    words = next((said for rule, said in _PLAIN.items() if rule in name), words)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{words} ({', '.join(names[:_MOST_NAMES])}{more})"


def price_of(report: Report, each_library: bool = True) -> str:
    """Return the three parts of the price: run time, flash and the TFLM that the firmware needs.

    The run time is that with each kernel library, or the range of them.
    """
    before, after, sizes = report.before, report.after, report.file_bytes
    run_time = by_library if each_library else over_libraries
    parts = [run_time(before.instructions, after.instructions, report.kernels)]
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
    need, least = needed_of(report, report.after), least_as_one(report)
    if report.budget is not None and report.budget < least:
        yield (
            f"one file does not fit {in_words(report.budget)}: the inputs or outputs ({report.bounds.io:,} bytes) "
            f"and TFLM's structures ({least - report.bounds.io:,}) alone take {least:,}"
        )
    elif report.least_in_stripes is not None and need == report.least_in_stripes:
        yield f"the search for stripes finds no candidate below {need:,} bytes within the limits on computation"


def least_as_one(report: Report) -> int:
    """Return the bytes of the interface and the tail, which a model in one file cannot go below."""
    if report.objective == "head":
        return report.bounds.io
    return report.bounds.io + min(report.before.tail_for_target, report.after.tail_for_target)


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
