"""Assemble the report of a run. No decision depends on what is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from ..evidence.proof import Proof
from ..kernels.as_it_came import RUNS_AS_IT_CAME, AsItCame
from ..kernels.boards import device_named
from ..kernels.code_size import flash_of
from ..kernels.esp_nn import said_of_releases
from ..kernels.faults import faults_in, faults_of, right_releases
from ..kernels.mend import kept_forms, mend
from ..kernels.profile import KernelProfile
from ..kernels.since import TflmBuild, needed_since
from ..kernels.support import TflmSupport, newer_alone, support_of
from ..memory.arrange import Arrangement, Declined, ModelPlacement, reuse_in_force
from ..memory.facts import ModelFacts, bound_of_any_order, facts_in_file
from ..memory.figures import Bounds, MemoryUse, StepUse, bounds_of
from ..memory.file import label_in_force, label_of_others
from ..memory.work import slowest
from ..model.analysis.loops import cleared_inputs
from ..model.io.plan_label import PlanLabel
from ..model.ir.copying import copy_model
from ..model.ir.model import Model
from ..options import Options, options_used
from ..solvers.schedule.check import peak_of
from ..version import __version__
from .advice import advice_for, of_conversion
from .answer import DeviceUse, Judgement, answer_of
from .loops import loop_uses
from .model import (
    NO_SUMMARY,
    Advice,
    Analysis,
    BindingStep,
    DeclinedUse,
    EndedBy,
    FaultUse,
    PlanUse,
    ProofUse,
    Report,
    RunFacts,
    SearchUse,
    SectionUse,
)
from .summary import summary_of, summary_of_analysis
from .warnings import of_cleared, of_estimate, of_faults, of_npu, of_open_sides, of_usual_tflm, warnings_for


class Original(NamedTuple):
    """The model as it was read, or as TFLM can load it, recorded first: later stages change the model.

    ``data``: the file that was read. ``planned_for``: the label of a plan for some kernels, where the run is for any.
    """

    name: str | None
    data: bytes
    facts: ModelFacts
    warnings: tuple[str, ...]
    planned_for: PlanLabel | None

    def per_call(self, calls: int) -> Original:
        """Return the original with the run time of one of so many calls."""
        memory = self.facts.memory
        per_call = {library: count // calls for library, count in memory.instructions.items()}
        return self._replace(facts=replace(self.facts, memory=replace(memory, instructions=per_call)))


def original_of(model: Model, name: str | None, data: bytes, profile: KernelProfile, verified: bool = True) -> Original:
    """Record the original under the offline plan in its file, if any; ``verified``: whether the result will be."""
    warnings = (*of_npu(model, verified), *of_open_sides(model))
    return Original(name, data, facts_in_file(model, profile), warnings, label_of_others(model, profile))


class Outcome(NamedTuple):
    """The result of a run: its ``model``, in the order of the file ``written``, how it is arranged, and its ``facts``.

    ``warnings`` and ``advice`` are those of the run itself; ``refusal``: why TFLM cannot run the result, None where it
    can or was not asked; ``tflm``: its measurements "before" and "after".
    """

    model: Model
    written: bytes
    arrangement: Arrangement
    facts: ModelFacts
    tflm: Mapping[str, Mapping[str, int | str]]
    refusal: str | None
    seconds: Mapping[str, float]
    warnings: Sequence[str]
    advice: Sequence[Advice]


def build_report(original: Original, outcome: Outcome, run: RunFacts, came: AsItCame, options: Options) -> Report:
    """Return the report of one run; ``came``: what TFLM makes of the original."""
    model, placement, profile = outcome.model, outcome.arrangement.placement, options.profile
    was, made = original.facts, outcome.facts
    before = replace(was.memory, tflm=dict(outcome.tflm["before"]))
    after = replace(made.memory, tflm=dict(outcome.tflm["after"]))
    any_order = bound_of_any_order(outcome.arrangement)
    support, device = _support(outcome, run, options.build), device_use(options.device)
    answer = answer_of(
        made.libraries,
        before=was.libraries,
        objective=options.objective,
        budget=options.budget,
        device=device,
        judgement="right" if support.runs else "cannot run",
    )
    is_missed = options.budget is not None and answer.fit is not None and not answer.fit.fits
    bounds = bounds_of(model, placement.layout, any_order)
    added = sorted(made.kinds - was.kinds)
    report = Report(
        **vars(run),
        **_of_model(original.name, model, profile, device),
        version=__version__,
        options=options_used(options),
        objective=options.objective,
        budget=options.budget,
        answer=answer,
        binding=_binding(after) if is_missed else None,
        before=before,
        after=after,
        bounds=replace(bounds, plan=max(bounds.plan, placement.plan.lower_bound)),
        interface={"before": was.interface, "after": made.interface},
        schedule=_order_use(outcome.arrangement, any_order),
        plan=_plan_use(placement),
        sharing=reuse_in_force(placement),
        operators_added=tuple(added),
        kernel_bytes=flash_of(added),
        tflm_since=day_since(added),
        libraries={"before": was.libraries, "after": made.libraries},
        file_bytes={"before": len(original.data), "after": len(outcome.written)},
        sha256={"before": sha256(original.data).hexdigest(), "after": sha256(outcome.written).hexdigest()},
        timing={**outcome.seconds, **_searched(outcome.arrangement)},
        arena={"before": was.arena, "after": made.arena},
        tflm=support,
        as_it_came=came,
        planned_for=original.planned_for,
    )
    advice = advice_for(report, model, profile, options, outcome.advice)
    cleared = of_cleared([tensor.name for tensor in cleared_inputs(model, placement.offsets)])
    found = (*of_faults(report), *warnings_for(report, profile, options))
    warnings = (*outcome.warnings, *original.warnings, *cleared, *found)
    return replace(report, warnings=warnings, summary=summary_of(report, advice))


def build_analysis(
    original: Original,
    model: Model,
    came: AsItCame,
    judgement: Judgement,
    profile: KernelProfile,
    device: DeviceUse | None,
    build: TflmBuild,
    budget: int | None,
    mends: bool,
    limits: tuple[Bounds, tuple[StepUse, ...]],
) -> Analysis:
    """Return the analysis of a model under the plan in its file; ``judgement``: of its file with the kernels.

    ``came``: what TFLM makes of the file; ``mends``: ``model`` is rewritten so that TFLM can load and read it.
    ``budget``: bytes that the arena may take, None for no limit. ``build``: the firmware's TFLM.
    ``limits``: lower bounds on the head, and every operator with its working set.
    """
    facts, (bounds, steps) = original.facts, limits
    advice = tuple(of_conversion(facts.memory, model, came if mends else RUNS_AS_IT_CAME))
    analysis = Analysis(
        **_of_model(original.name, model, profile, device),
        file_bytes=len(original.data),
        sha256=sha256(original.data).hexdigest(),
        planned_for=label_in_force(model),
        answer=answer_of(facts.libraries, budget=budget, device=device, judgement=judgement),
        memory=facts.memory,
        libraries=facts.libraries,
        bounds=bounds,
        steps=steps,
        arena=facts.arena,
        tflm=came.support,
        tflm_build=build.name,
        as_it_came=came,
        mends=mends,
    )
    warnings = (*of_usual_tflm(device, build), *original.warnings, *of_estimate(facts.memory), *of_faults(analysis))
    return replace(analysis, warnings=warnings, summary=summary_of_analysis(analysis, advice))


def _of_model(name: str | None, model: Model, profile: KernelProfile, device: DeviceUse | None) -> dict[str, Any]:
    """Return the fields of a record that follow from the model and the kernels alone."""
    return {
        "model": name,
        "target": profile.target,
        "kernels": profile.name,
        "device": device,
        "loops": loop_uses(model),
        "faults": _fault_uses(model, profile),
        "right_with": _right_with(model, profile),
        "warnings": (),
        "summary": NO_SUMMARY,
    }


def _fault_uses(model: Model, profile: KernelProfile) -> tuple[FaultUse, ...]:
    """Return the operators that the kernels of a profile compute wrongly."""
    mended = mend(copy_model(model), profile, kept_forms(model, profile)).model
    left = {(met.form, met.fault.name) for met in faults_in(mended, profile)}
    return tuple(
        FaultUse(
            *(subgraph, index, met.operator, met.output),
            *(met.fault.name, met.fault.effect, met.library, met.releases, met.fault.source),
            mends=(met.form, met.fault.name) not in left,
        )
        for subgraph, index, operator in model.located_operators
        for met in faults_of(operator, profile)
    )


def _right_with(model: Model, profile: KernelProfile) -> str | None:
    right = right_releases(model, profile)
    is_asked = not profile.libraries and 1 < len(profile.releases) != len(right)
    return said_of_releases(right) if is_asked and right else None


def proof_use(proof: Proof) -> ProofUse:
    """Describe a proof."""
    reason = None if proof.proved else str(proof)
    return ProofUse(proof.status.name.lower(), reason, proof.chance, proof.facts, proof.is_finite)


def device_use(name: str | None) -> DeviceUse | None:
    """Describe a chip or board by its name; None where it names neither."""
    device = None if name is None else device_named(name)
    if device is None:
        return None
    chip = device.chip
    return DeviceUse(device.name, chip.name, chip.ram, device.flash, chip.left, chip.left_by)


def _support(outcome: Outcome, run: RunFacts, build: TflmBuild) -> TflmSupport:
    """Return whether the firmware's TFLM can run the result: a run counts more than the table of the present one's."""
    known = support_of(outcome.model, build)
    if run.basis.plan_executed:
        return newer_alone(known)
    return TflmSupport(False, (), outcome.refusal) if known.runs and outcome.refusal is not None else known


def _searched(arrangement: Arrangement) -> dict[str, float]:
    """Seconds of the searches for the order and the plan in force, which are a part of other stages."""
    order, plan = arrangement.schedule.seconds, arrangement.placement.plan.seconds
    return {"search for the order": round(order, 6), "search for the plan": round(plan, 6)}


def _order_use(arrangement: Arrangement, bound: int) -> SearchUse:
    """Return the report on the search for the order; the order in force may be another one.

    ``bound``: bytes of the head that no plan of any order goes below.
    """
    schedule, placement = arrangement.schedule, arrangement.placement
    # A plan of the order may need less than its peak, where it saves what no scheduler counts.
    reached = min(peak_of(arrangement.problem, placement.order), placement.memory.arena_bytes)
    gap = max(0, reached - bound)
    ended_by = _end_of(gap, schedule.stopped_by_clock)
    return SearchUse(schedule.method, gap == 0, bound, gap, ended_by)


def _plan_use(placement: ModelPlacement) -> PlanUse:
    """Return the report on the search for the offsets; those in force need not be the plan's."""
    plan, tensors = placement.plan, placement.layout.tensors
    gap = placement.memory.arena_bytes - plan.lower_bound
    why = plan.certificate
    names = tuple(tensors[item].name for item in why.items if item < len(tensors))
    return PlanUse(
        method=plan.method,
        optimal=gap == 0,
        lower_bound=plan.lower_bound,
        gap_bytes=gap,
        ended_by=_end_of(gap, plan.stopped_by_clock),
        bound_by=plan.bound_by,
        section=SectionUse(why.nbytes, names, len(why.items) - len(names), why.given),
        dropped=plan.dropped,
    )


def _end_of(gap: int, stopped_by_clock: bool) -> EndedBy:
    if gap == 0:
        return "proof"
    return "clock" if stopped_by_clock else "work_limit"


def declined_use(declined: Declined | None, before: Mapping[str, int]) -> DeclinedUse | None:
    """Describe the result that was declined; ``before``: instructions of the original by kernel library."""
    if declined is None:
        return None
    slowdown = round(slowest(before, declined.instructions), 4)
    return DeclinedUse(declined.need, slowdown, flash_of(declined.kinds), day_since(declined.kinds))


def day_since(kinds: Sequence[str]) -> str | None:
    """Return the date of the oldest TFLM that has these operators; None if every version has."""
    since = needed_since(kinds)
    return None if since is None else since.isoformat()


def _binding(after: MemoryUse) -> BindingStep | None:
    step = after.peak
    return None if step is None else BindingStep(step.subgraph, step.index, step.operator, step.output, step.bytes)
