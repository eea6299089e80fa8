"""Assemble the report of a run. No decision depends on what is computed here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..evidence.equivalence.verification import Verified
from ..evidence.proof import Proof
from ..kernels.as_it_came import RUNS_AS_IT_CAME, AsItCame, as_it_came
from ..kernels.boards import device_named
from ..kernels.code_size import flash_of
from ..kernels.esp_nn import said_of_releases
from ..kernels.faults import faults_of, right_releases
from ..kernels.profile import KernelProfile
from ..kernels.since import PRESENT, TflmBuild, needed_since
from ..kernels.support import TflmSupport, newer_alone, support_of
from ..memory.arrange import Arrangement, Declined, ModelPlacement, reuse_in_force
from ..memory.figures import (
    ArenaMap,
    InterfaceTensor,
    MemoryUse,
    arena_map,
    bounds_of,
    interface_of,
    memory_use,
    operator_kinds,
    step_uses,
)
from ..memory.file import label_in_force
from ..memory.layout import memory_layout
from ..memory.problems import schedule_problem
from ..memory.reserve import LibraryNeed, needs_by_library
from ..memory.work import slowest
from ..model.analysis.loops import cleared_inputs
from ..model.io import offline_plan
from ..model.ir.change import CHANNELS_LAST, INFERRED_SHAPES, Refusal, RewriteUse
from ..model.ir.model import Model
from ..options import Options, options_used
from ..solvers.schedule.check import peak_of
from ..solvers.schedule.problem import head_lower_bound, memory_graph, schedule_lower_bound
from ..version import __version__
from .advice import advice_for, of_conversion
from .answer import DeviceUse, answer_of, judged
from .loops import loop_uses
from .model import (
    NO_SUMMARY,
    Analysis,
    BindingStep,
    DeclinedUse,
    EndedBy,
    FaultUse,
    PlanUse,
    ProofUse,
    Report,
    SearchUse,
    SectionUse,
    SlideUse,
)
from .summary import summary_of, summary_of_analysis
from .warnings import (
    FailedStep,
    of_cleared,
    of_estimate,
    of_failure,
    of_faults,
    of_metadata,
    of_npu,
    of_open_sides,
    of_usual_tflm,
    warnings_for,
)


@dataclass(frozen=True)
class ModelFacts:
    """Facts of the original model for the report. They are recorded first, since later stages change the model."""

    name: str | None
    file_bytes: int
    sha256: str
    memory: MemoryUse
    interface: tuple[InterfaceTensor, ...]
    kinds: frozenset[str]
    libraries: dict[str, LibraryNeed]
    arena: ArenaMap
    warnings: tuple[str, ...]


def facts_of(model: Model, name: str | None, data: bytes, options: Options) -> ModelFacts:
    """Memory, bounds, and steps of a model under the offline plan in its file, if any; ``data`` is that file."""
    profile = options.profile
    planned = offline_plan.decode(model) or {}
    layout = memory_layout(model, profile)
    memory = memory_use(model, layout, planned, profile)
    arena = arena_map(model, layout, planned, memory, profile)
    needs = needs_by_library(model, planned, profile)
    kinds, digest = operator_kinds(model), _digest(data)
    warnings = (*of_npu(model, options.verify), *of_open_sides(model))
    return ModelFacts(name, len(data), digest, memory, interface_of(model), kinds, needs, arena, warnings)


@dataclass(frozen=True)
class RunOutcome:
    """The results of the stages of one run, for the report.

    ``written`` is the new file, ``inferred`` the names of tensors whose shape in the file was wrong, ``seconds`` by
    stage. ``decision``: what ``--replay`` takes. ``least_as_one``: bytes of the objective that no form of the
    model in one file goes below. ``least_in_stripes``: a lower bound of the objective over all that the
    search for stripes considers.
    ``metadata_left_out``: by name, since it counts operators by their old positions. ``calls``: of the result, for one
    of the original. ``slide``: what a call takes of a window.
    """

    arrangement: Arrangement
    written: bytes
    inferred: tuple[str, ...]
    rewrites: tuple[RewriteUse, ...]
    refused: tuple[Refusal, ...]
    verification: Verified
    seconds: dict[str, float]
    decision: str
    least_as_one: int
    least_in_stripes: int | None
    failed: tuple[FailedStep, ...]
    metadata_left_out: tuple[str, ...]
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    declined: Declined | None = None
    came: AsItCame = RUNS_AS_IT_CAME
    calls: int = 1
    slide: SlideUse | None = None


def build_report(original: ModelFacts, model: Model, outcome: RunOutcome, options: Options) -> Report:
    """The report of one run; ``model`` is the result, in the order in which it was written."""
    arrangement, verification, profile = outcome.arrangement, outcome.verification, options.profile
    placement = arrangement.placement
    per_call = {library: count // outcome.calls for library, count in original.memory.instructions.items()}
    before = replace(original.memory, tflm=verification.tflm_before, instructions=per_call)
    after = replace(placement.memory, tflm=verification.tflm_after)
    arena = arena_map(model, placement.layout, placement.offsets, after, profile)
    any_order = _bound_of_any_order(arrangement)
    needs = arrangement.needs
    needs = needs_by_library(model, placement.offsets, profile) if needs is None else dict(needs)
    support, device = _support(model, verification, options.build), device_use(options.device)
    answer = answer_of(
        needs,
        before=original.libraries,
        objective=options.objective,
        budget=options.budget,
        device=device,
        judgement="right" if support.runs else "cannot run",
    )
    is_missed = options.budget is not None and answer.fit is not None and not answer.fit.fits
    bounds = bounds_of(model, placement.layout, any_order)
    inferred = (RewriteUse(INFERRED_SHAPES, outcome.inferred, "exact", 0),) if outcome.inferred else ()
    added = sorted(operator_kinds(model) - original.kinds)
    since = needed_since(added)
    turned = [name for use in outcome.rewrites if use.rule == CHANNELS_LAST for name in use.operators]
    report = Report(
        version=__version__,
        model=original.name,
        target=profile.target,
        kernels=profile.name,
        options=options_used(options),
        objective=options.objective,
        budget=options.budget,
        answer=answer,
        binding=_binding(after) if is_missed else None,
        before=before,
        after=after,
        bounds=replace(bounds, plan=max(bounds.plan, placement.plan.lower_bound)),
        interface={"before": original.interface, "after": interface_of(model, turned)},
        schedule=_order_use(arrangement, any_order),
        plan=_plan_use(placement),
        decision=outcome.decision,
        rewrites=(*inferred, *outcome.rewrites),
        refused=outcome.refused,
        sharing=reuse_in_force(placement),
        operators_added=tuple(added),
        kernel_bytes=flash_of(added),
        tflm_since=None if since is None else since.isoformat(),
        declined=_declined_use(outcome.declined, before.instructions),
        libraries={"before": original.libraries, "after": needs},
        equivalence=verification.verdicts,
        basis=verification.basis,
        runner=verification.runner,
        file_bytes={"before": original.file_bytes, "after": len(outcome.written)},
        sha256={"before": original.sha256, "after": _digest(outcome.written)},
        timing={**outcome.seconds, **_searched(arrangement)},
        warnings=(),
        summary=NO_SUMMARY,
        arena={"before": original.arena, "after": arena},
        loops=loop_uses(model),
        least_as_one=outcome.least_as_one,
        least_in_stripes=outcome.least_in_stripes,
        tflm=support,
        as_it_came=outcome.came,
        calls=outcome.calls,
        slide=outcome.slide,
        device=device,
        proofs={name: _proof_use(proof) for name, proof in outcome.proofs.items()},
        faults=_fault_uses(model, profile),
        right_with=_right_with(model, profile),
    )
    advice = advice_for(report, model, profile, options)
    cleared = cleared_inputs(model, placement.offsets)
    warnings = (
        *(of_failure(each) for each in outcome.failed),
        *of_metadata(outcome.metadata_left_out),
        *original.warnings,
        *of_cleared([tensor.name for tensor in cleared]),
        *of_faults(report),
        *warnings_for(report, profile, options),
    )
    return replace(report, warnings=warnings, summary=summary_of(report, advice))


def build_analysis(
    model: Model,
    name: str | None,
    data: bytes,
    profile: KernelProfile,
    device: DeviceUse | None = None,
    came: AsItCame | None = None,
    mends: bool = False,
    budget: int | None = None,
    build: TflmBuild = PRESENT,
) -> Analysis:
    """Describe an unchanged model under the plan in its file, if any; ``data`` is that file.

    ``came``: what TFLM makes of the file, where that is known; ``mends``: ``model`` is rewritten so that TFLM can load
    and read it. ``budget``: bytes that the arena may take, None for no limit. ``build``: the firmware's TFLM.
    """
    layout, planned = memory_layout(model, profile), offline_plan.decode(model) or {}
    memory = memory_use(model, layout, planned, profile)
    problem = schedule_problem(model.main, layout)
    bounds = bounds_of(model, layout, head_lower_bound(problem, schedule_lower_bound(problem)))
    label = label_in_force(model)
    steps, needs = step_uses(model, layout, planned), needs_by_library(model, planned, profile)
    arena = arena_map(model, layout, planned, memory, profile)
    came = as_it_came(model, profile, build) if came is None else came
    advice = tuple(of_conversion(memory, model, came if mends else RUNS_AS_IT_CAME))
    judgement = judged(model, came, profile)
    answer = answer_of(needs, budget=budget, device=device, judgement=judgement)
    analysis = Analysis(
        model=name,
        target=profile.target,
        kernels=profile.name,
        file_bytes=len(data),
        sha256=_digest(data),
        planned_for=label,
        answer=answer,
        memory=memory,
        libraries=needs,
        bounds=bounds,
        steps=steps,
        summary=NO_SUMMARY,
        arena=arena,
        loops=loop_uses(model),
        tflm=came.support,
        tflm_build=build.name,
        as_it_came=came,
        mends=mends,
        device=device,
        faults=_fault_uses(model, profile),
        right_with=_right_with(model, profile),
    )
    warnings = (
        *of_usual_tflm(device, build),
        *of_npu(model, True),
        *of_open_sides(model),
        *of_estimate(memory),
        *of_faults(analysis),
    )
    return replace(analysis, warnings=warnings, summary=summary_of_analysis(analysis, advice))


def _fault_uses(model: Model, profile: KernelProfile) -> tuple[FaultUse, ...]:
    """Return the operators that the kernels of a profile compute wrongly."""
    return tuple(
        FaultUse(
            subgraph=subgraph,
            index=index,
            operator=met.operator,
            output=met.output,
            fault=met.fault.name,
            effect=met.fault.effect,
            library=met.library,
            releases=met.releases,
            source=met.fault.source,
        )
        for subgraph, graph in enumerate(model.graphs)
        for index, operator in enumerate(graph.operators)
        for met in faults_of(operator, profile)
    )


def _right_with(model: Model, profile: KernelProfile) -> str | None:
    right = right_releases(model, profile)
    is_asked = not profile.libraries and 1 < len(profile.releases) != len(right)
    return said_of_releases(right) if is_asked and right else None


def _proof_use(proof: Proof) -> ProofUse:
    reason = None if proof.proved else str(proof)
    return ProofUse(proof.status.name.lower(), reason, proof.chance, proof.facts, proof.is_finite)


def device_use(name: str | None) -> DeviceUse | None:
    """Describe a chip or board by its name; None where it names neither."""
    device = None if name is None else device_named(name)
    if device is None:
        return None
    chip = device.chip
    return DeviceUse(device.name, chip.name, chip.ram, device.flash, chip.left, chip.left_by)


def _support(model: Model, verification: Verified, build: TflmBuild) -> TflmSupport:
    """Return whether the firmware's TFLM can run the result: a run counts more than the table of the present one's."""
    known = support_of(model, build)
    if verification.basis.plan_executed:
        return newer_alone(known)
    return TflmSupport(False, (), verification.refusal) if known.runs and verification.refusal is not None else known


def _bound_of_any_order(arrangement: Arrangement) -> int:
    """Bytes of the head that no plan of any order goes below."""
    if memory_graph(arrangement.problem).has_one_order:
        return arrangement.placement.plan.lower_bound
    return head_lower_bound(arrangement.problem, arrangement.schedule.lower_bound)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


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


def _declined_use(declined: Declined | None, before: Mapping[str, int]) -> DeclinedUse | None:
    if declined is None:
        return None
    since = None if declined.since is None else declined.since.isoformat()
    slowdown = round(slowest(before, declined.instructions), 4)
    return DeclinedUse(declined.need, slowdown, flash_of(declined.kinds), since)


def _binding(after: MemoryUse) -> BindingStep | None:
    step = after.peak
    return None if step is None else BindingStep(step.subgraph, step.index, step.operator, step.output, step.bytes)
