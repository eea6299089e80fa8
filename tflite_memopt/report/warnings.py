"""Warnings that the user must read before flashing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten

from ..evidence.equivalence.baseline import LITERT
from ..evidence.equivalence.verdict import Verdict
from ..kernels.boards import usual_tflm
from ..kernels.mend import NAMES
from ..kernels.profile import KernelProfile
from ..kernels.since import TflmBuild
from ..memory.figures import MemoryUse
from ..memory.work import slowdowns
from ..model.io.plan_label import PlanLabel
from ..model.ir.change import BOUNDARY, CHANNELS_LAST, UNCALLED
from ..model.ir.check import NPU_HAS_ADDRESSES, first_on_npu
from ..model.ir.model import Model
from ..options import Options
from .answer import DeviceUse
from .model import Analysis, FaultUse, Report
from .words import percent, short_name

_LONG = 100
"""Characters of a runtime's own message: -v has all of it."""
_MLTK = "SL_PARAMSv1"


def warnings_for(report: Report, profile: KernelProfile, options: Options) -> tuple[str, ...]:
    """Return the warnings of a report, most general first."""
    first = (*of_usual_tflm(report.device, options.build), *of_former_plan(report.planned_for), *_of_basis(report))
    then = (*_of_proofs(report), *_of_kernels(report, profile, options), *_of_runner(report), *_of_values(report))
    return (*first, *then, *_of_searches(report), *_of_interface(report, options), *_of_uncalled(report))


def of_failure(step: str, reason: str) -> str:
    """``step``: of a run, or an action of its decision, that was left out; ``reason``: the failure of its result."""
    return f"{step} dropped because the result failed verification; please report this model: {reason}"


def of_decision(step: str) -> str:
    """``step``: what of a decision was left out."""
    return (
        f"{step} of the decision dropped: with it a kernel library needs more than for the original, computes wrongly, "
        "or takes more run time than --max-slowdown allows"
    )


def of_mends(slowdown: float) -> Iterator[str]:
    """``slowdown``: run time, as a share, that every result adds for what kernels compute wrongly otherwise."""
    if slowdown > 0:
        yield f"the run times include {percent(slowdown)} for what kernels compute wrongly otherwise"


def of_metadata(names: Sequence[str]) -> Iterator[str]:
    """``names`` of metadata that the result does not have."""
    for name in names:
        yield f"metadata '{name}' dropped: it refers to operators by their old positions"


def of_stated_arena(model: Model) -> Iterator[str]:
    """Yield the warning for metadata in which Silicon Labs' MLTK states the arena of the original."""
    if any(name == _MLTK for name, _ in model.metadata):
        yield (
            f"metadata '{_MLTK}' stays as it was: where its runtime_memory_size is set, MLTK takes an arena of that "
            "size; set it again, by mltk update_params"
        )


def of_npu(model: Model, verified: bool) -> Iterator[str]:
    """Yield the warnings for a file with operators of an NPU."""
    on_npu = first_on_npu(model)
    if on_npu is None:
        return
    where, npu = on_npu
    unverified = "" if verified else "; nothing is verified, since it runs only on the chip: test it there"
    yield f"{where} runs on {npu.name}: its memory outside of the arena is not counted{unverified}"
    if npu.has_addresses:
        yield f"{NPU_HAS_ADDRESSES}: both stay, and what the NPU touches stays where its compiler put it"


def of_usual_tflm(device: DeviceUse | None, build: TflmBuild) -> Iterator[str]:
    """Yield the build of TFLM that a board implies."""
    if device is not None and usual_tflm(device.name) == build.name:
        kernels = ", and planned for any kernels, since its own were not measured" if build.kernels else ""
        yield f"counted for {build.name}, the usual TFLM of this board{kernels}: --tflm names another one"


def of_former_plan(label: PlanLabel | None) -> Iterator[str]:
    """``label``: of the plan in a file as it came, where a run is for any kernels and the plan is not."""
    if label is not None:
        made_with = f"--kernels {label.kernels}" if label.target is None else f"--target {label.device or label.target}"
        yield f"the file was planned with {made_with}: without it the result is for any kernels, and may need more RAM"


def of_estimate(memory: MemoryUse) -> Iterator[str]:
    """Yield the warning where the size to reserve is not counted to the byte."""
    if not memory.required_is_exact:
        yield "an operator is not in the kernel tables: the arena to reserve is an estimate, measure it"


def of_open_sides(model: Model) -> Iterator[str]:
    """Yield the inputs whose size beyond the batch the file leaves open: it is planned with 1."""
    for tensor in model.main.inputs:
        signature = tensor.extras.get("shapeSignature")
        sides = [] if signature is None else [axis for axis, size in enumerate(signature) if axis and size < 0]
        if sides:
            yield (
                f"'{tensor.name}' has no size along {', '.join(map(str, sides))} in the file: planned for the shape "
                f"{list(tensor.shape)}; give the network's input its size (keras.Input) and convert again"
            )


def of_faults(report: Report | Analysis) -> Iterator[str]:
    """Yield a warning for each fault of the kernels that operators meet, and the releases that are right."""
    by_fault: dict[tuple[str, str], list[FaultUse]] = {}
    # An analysis names first what every TFLM computes wrongly.
    known = {fault.fault for fault in report.as_it_came.wrong} if isinstance(report, Analysis) else ()
    for met in (fault for fault in report.faults if fault.fault not in known):
        by_fault.setdefault((met.fault, met.releases), []).append(met)
    is_any = report.target is None
    for met, *others in by_fault.values():
        more = f" and {len(others)} more" if others else ""
        where = f"firmware that links {met.library}" if is_any else "the target's kernels"
        yield (
            f"{where}: {met.operator} '{short_name(met.output)}'{more} of the model as it came: {met.effect} "
            f"({met.fault}; {met.releases}; {met.source})"
        )
    if by_fault and not is_any:
        yield f"right with {report.right_with or 'none of the releases that were read'}"


def of_cleared(inputs: Sequence[str]) -> Iterator[str]:
    """``inputs`` by name, on whose bytes a loop's result grows: TFLM holds that for state, and clears it."""
    if inputs:
        names = ", ".join(f"'{name}'" for name in inputs)
        yield f"firmware must not call Reset() between writing {names} and Invoke(): it clears bytes of the input"


def _of_basis(report: Report) -> Iterator[str]:
    yield from report.basis.findings
    missing = report.equivalence.get(LITERT)
    if missing is not None and missing.equal is None and missing.reason:
        yield f"not run on LiteRT: {shorten(missing.reason, _LONG, placeholder=' ...')}"
    if report.equivalence and not report.basis.plan_executed:
        yield f"equal as a graph only: TFLM did not execute the plan ({report.basis.reason})"


_PROVED: Mapping[str, str] = {
    "result": "the result",
    "step": "what its calls compute",
    "plan": "the memory plan",
    "stripes": "the graph after rewrites",
}


def _of_proofs(report: Report) -> Iterator[str]:
    """Yield each part that is not proved, and the reason."""
    for name, proof in report.proofs.items():
        if not proof.is_proved:
            yield f"{_PROVED[name]} is verified on samples only; the proof for all inputs stopped: {proof.reason}"


def _of_kernels(report: Report, profile: KernelProfile, options: Options) -> Iterator[str]:
    before, after = report.before, report.after
    if not profile.is_portable and any(use.kind != "view" for use in report.sharing):
        yield f"outputs overwrite inputs: correct only with firmware that links these kernels: {profile.description}"
    elif not profile.is_portable:
        yield f"the size to reserve holds for these kernels: {profile.description}"
    # What is kept of a window may take RAM for run time, and what is right now more than what was wrong.
    is_alike = report.slide is None and report.as_it_came.makes == "runs" and report.planned_for is None
    for name, (was, need) in report.answer.more_than_before.items() if is_alike else ():
        advice = "; name your chip by --target" if report.target is None else ""
        yield f"needs more than the original with {name} kernels: {was:,} -> {need:,} bytes{advice}"
    more = after.required_for_target - before.required_for_target
    if report.slide is not None and more > 0:
        saves = max(slowdowns(before.instructions, after.instructions).values(), default=0.0) < 0
        why = "it saves run time alone" if saves else "and no less run time: keep the window"
        yield f"sliding takes {more:,} bytes more than the whole window; {why}"
    yield from of_estimate(after)
    head = after.tflm.get("head")
    if isinstance(head, int) and profile.in_wheel and head != after.arena_bytes:
        yield f"TFLM's head is {head} bytes, the plan says {after.arena_bytes}: please report this model"
    is_mended = any(use.rule in NAMES for use in report.rewrites)
    if is_alike and after.arena_bytes > before.arena_bytes and not is_mended:
        yield f"the planned head is larger than before ({before.arena_bytes}): keep the original model"


def _of_runner(report: Report) -> Iterator[str]:
    if report.runner is None:
        return
    before, after = (report.runner[side].get("smallest_arena") for side in ("before", "after"))
    if isinstance(after, int) and isinstance(before, int) and after > before:
        yield f"the runner needs a larger arena than before: {before} -> {after} bytes"
    promised = report.after.required_for_target
    if isinstance(after, int) and report.target is None and after > promised:
        yield f"the runner needs {after} bytes of arena, not {promised}: --target counts for your kernels"
    if "runner" not in report.basis.executed_by:
        yield f"on the runner: {report.equivalence['runner'].reason}"


def _of_values(report: Report) -> Iterator[str]:
    if not any(use.exactness == "approximates" for use in report.rewrites):
        return
    measured = [verdict for verdict in report.equivalence.values() if verdict.equal is not None]
    yield (
        "--allow-approximate: integers are rounded differently, so the result may NOT equal the original; "
        f"{_measured(measured)}; check the accuracy with your own data"
    )


def _of_searches(report: Report) -> Iterator[str]:
    for name, search in (("order", report.schedule), ("plan", report.plan)):
        if search.ended_by == "clock":
            yield f"the clock stopped the search for the {name}: another run may give another result"
    for reason in report.plan.dropped:
        yield f"the answer of a planner broke a rule and was dropped; please report this model: {reason}"


def _measured(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return "the difference of the outputs was not measured"
    steps = max((verdict.max_lsb_diff for verdict in verdicts if verdict.max_lsb_diff is not None), default=None)
    farthest = max(verdict.max_abs_diff for verdict in verdicts)
    size = f"{farthest:g}" if steps is None else f"{steps:g} LSB"
    share = max(verdict.differing_share for verdict in verdicts)
    if not share:
        return f"no difference was seen over {verdicts[0].samples} samples"
    text = f"outputs differ by up to {size}, {100 * share:.3g} % of their values, over {verdicts[0].samples} samples"
    agreeing = [verdict.agreeing_argmax_share for verdict in verdicts if verdict.agreeing_argmax_share is not None]
    return f"{text}, the largest score is the same one in {min(agreeing):.1%}" if agreeing else text


def _of_uncalled(report: Report) -> Iterator[str]:
    for use in report.rewrites:
        if use.rule == UNCALLED:
            names = ", ".join(f"'{name}'" for name in use.operators)
            yield f"{names} left out: TFLM runs only the first signature; convert each signature to a file of its own"


def _of_interface(report: Report, options: Options) -> Iterator[str]:
    for refusal in report.refused:
        if refusal.rule == BOUNDARY and options.io != "keep":
            yield f"--io int8: '{refusal.operator}' keeps its type: {refusal.reason}"
        if refusal.rule == CHANNELS_LAST and options.channels_last:
            yield f"--io channels-last: '{refusal.operator}' keeps its layout: {refusal.reason}"
