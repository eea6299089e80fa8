"""One runtime's judgement of an optimised model: what it computes, against the original and against its own stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from ..analysis.macs import model_macs
from ..analysis.placeholders import partial_in
from ..graph.alignment import ARENA_ALIGNMENT
from ..io.offline_plan import tensors_in_file_order
from ..io.reader import read_model
from ..ir.change import Exactness
from ..ir.model import Model
from .adapter import LARGEST_ARENA, REFERENCE, RunJob
from .approximation import untouched_links
from .compare import InnerDifference, OutputDifference, first_inner_difference, first_output_difference
from .correspondence import Link, Pieces, links_between, links_in_loops
from .exposure import bytes_to_show
from .external_runner import RUNNER
from .failure import NO_PROMISE, Promise
from .gap import Gap, gap_between, signal_to_noise
from .inputs import Sample
from .interface import Interface
from .loop_turns import add_turns, given_to_loops
from .original import Ground, Original, run_exposed
from .plan_judge import PlanJob, Planned, Vouches, judge_plan
from .pool import Interpreters
from .runner import ModelRunner, Run
from .tolerance import ANY, EXACT, FLOAT_SUMS, Array, Tolerance, largest_magnitudes
from .trace import Trace, computed_tensors, trace_of
from .verdict import Verdict
from .vouching import Witnesses

TOLERANCES: Mapping[Exactness, Tolerance] = {"exact": EXACT, "reassociates": FLOAT_SUMS, "approximates": ANY}
"""Between the original and the optimised model, by the loosest rewrite that was applied."""


@dataclass(frozen=True)
class Claim:
    """An optimised model to be judged, and what is claimed of it.

    ``rewritten``: its graph before stripes, order and plan, as bytes; judged against where values may differ from the
    original's. ``approximated``: names of the original's tensors that an approximation computes. ``pieces``: see
    :mod:`.correspondence`; ``loop_pieces``: those of the subgraphs, by number. ``arena_bytes`` is enough for any plan
    in the wheel's TFLM. ``promises``: what is said of its memory, by the name of the TFLM that it is for.
    """

    data: bytes
    model: Model
    rewritten: bytes | None
    exactness: Exactness
    approximated: tuple[str, ...]
    pieces: Pieces
    interface: Interface
    samples: list[Sample]
    arena_bytes: int
    promises: Mapping[str, Promise]
    least_decibels: float
    loop_pieces: Mapping[int, Pieces] = field(default_factory=dict)

    @property
    def tolerance(self) -> Tolerance:
        """Between the original's values and the optimised model's."""
        return TOLERANCES[self.exactness]

    @cached_property
    def rewritten_model(self) -> Model | None:
        """What ``rewritten`` holds. It is read when it is first asked for: most verdicts need none."""
        return None if self.rewritten is None else read_model(self.rewritten)


@dataclass(frozen=True)
class Judgement:
    """A verdict, TFLM's memory where it measured it, and whether it executed the plan, or the reason why not.

    ``note``: what is to be said of the runtime itself.
    """

    verdict: Verdict
    facts: Mapping[str, int]
    plan_executed: bool = False
    reason: str | None = None
    note: str | None = None


Ran = Trace | Run | None
"""What a runtime made of the optimised model, loops included, or the run that failed; None: not asked."""


def run_graph(runtime: str, original: Original, claim: Claim, interpreters: Interpreters) -> Ran:
    """Run the optimised model on LiteRT or TensorFlow, where the original ran there."""
    ground, interpreter = original.grounds[runtime], interpreters[runtime]
    if ground.trace is None:
        return None
    kernels = ground.kernels or REFERENCE
    wanted = (*computed_tensors(claim.model.main), *given_to_loops(claim.model))
    run = interpreter.run(RunJob(claim.data, claim.samples, 0, wanted, kernels))
    if not run.ran:
        return run
    found = trace_of(run.arrays, len(claim.samples))
    bodies = {number for number, pieces in claim.loop_pieces.items() if pieces}
    return add_turns(found, claim.data, claim.model, bodies, interpreter, kernels) or found


def judge_graph(runtime: str, original: Original, claim: Claim, interpreters: Interpreters, found: Ran) -> Judgement:
    """On LiteRT or TensorFlow, which plan for themselves: outputs and inner tensors; ``found`` by :func:`run_graph`."""
    ground = original.grounds[runtime]
    if found is None:
        return Judgement(_silent(ground), {})
    if isinstance(found, Run):
        return Judgement(_refused(original, "optimised", found), {})

    def traced(data: bytes, model: Model) -> Trace | Run:
        wanted, kernels = computed_tensors(model.main), ground.kernels or REFERENCE
        run = interpreters[runtime].run(RunJob(data, claim.samples, 0, wanted, kernels))
        return trace_of(run.arrays, len(claim.samples)) if run.ran else run

    return Judgement(_compared(original, ground, claim, found, found.outputs, traced), {})


def judge_on_tflm(
    original: Original,
    claim: Claim,
    interpreters: Interpreters,
    name: str = "tflm",
    elsewhere: Callable[[], Trace | None] | None = None,
) -> Judgement:
    """On TFLM, which executes the plan: the plan tensor by tensor first, then the graph.

    ``name``: the wheel's, or ``RUNNER``, the user's own. ``elsewhere`` waits for what a runtime that shares no memory
    made of the optimised model: where the planned model has the same bits in every tensor, TFLM is not asked for them
    as well.
    """
    ground, promise = original.grounds[name], claim.promises.get(name, NO_PROMISE)
    if not claim.samples:
        return Judgement(_silent(ground), {}, False, ground.reason)
    job = PlanJob(
        interpreters[name],
        claim.data,
        claim.model,
        claim.samples,
        LARGEST_ARENA if name == RUNNER else claim.arena_bytes,
        promise.required_bytes,
        promise.head,
        name != RUNNER,
        interpreters.second(name, model_macs(claim.model) * len(claim.samples)),
    )
    if elsewhere is not None and ground.trace is not None and ground.is_sound:
        found = _judged(original, claim, job, name, _witnesses(original, claim, ground.trace, elsewhere).vouch)
        if found is not None:
            return found
    judged = _judged(original, claim, job, name, None)
    assert judged is not None
    return judged


def _witnesses(original: Original, claim: Claim, before: Trace, elsewhere: Callable[[], Trace | None]) -> Witnesses:
    """They must be shown what is compared with the original's, as far as TFLM can show it.

    What a loop hands on as it got it is not: nothing is computed there, and its rows may be given up by then.
    """
    links = _links(original.model, claim)
    partial = partial_in(claim.model)
    tensors = tensors_in_file_order(claim.model)
    linked = {link.after for link in links if link.before in before.tensors and tensors[link.after] not in partial}
    return Witnesses(before, links, elsewhere, frozenset(linked & bytes_to_show(claim.model).keys()))


def _judged(original: Original, claim: Claim, job: PlanJob, name: str, vouches: Vouches | None) -> Judgement | None:
    """None where only a run with no memory shared can tell."""
    planned = judge_plan(job, vouches)
    found = _judgement_of(planned, original, claim, job, name)
    if found is None or not planned.took_more:
        return found
    kernels = original.grounds[name].kernels or "the tflite-micro wheel on 64 bits"
    return replace(found, note=_OTHER_VERSION.format(kernels, job.required_bytes))


def _judgement_of(planned: Planned, original: Original, claim: Claim, job: PlanJob, name: str) -> Judgement | None:
    ground = original.grounds[name]
    wrong = _against_plan(planned, None if job.may_take_more else job.head)
    if not planned.run.ran and ground.trace is None:
        return Judgement(_silent(ground), {}, False, ground.reason)
    if wrong is not None:
        return Judgement(_differing(original, wrong), planned.run.facts, False, wrong)
    apart = planned.apart
    if apart is None and name == RUNNER and ground.trace is not None:
        verdict = _outputs_only(original, ground, claim, planned, job.interpreter)
        return Judgement(verdict, planned.run.facts, False, planned.reason)
    if apart is None:
        return Judgement(_silent(ground, planned.reason), planned.run.facts, False, planned.reason)

    def traced(data: bytes, model: Model) -> Trace | Run:
        return run_exposed(job.interpreter, data, claim.samples, job.arena_bytes)

    if ground.trace is not None and ground.is_sound:
        verdict = _compared(original, ground, claim, apart, planned.outputs, traced)
        if planned.is_vouched and not verdict.equal:
            return None
        return Judgement(verdict, planned.run.facts, True)
    is_sound = first_output_difference(apart.outputs, planned.outputs) is None
    if not is_sound:
        return Judgement(_silent(ground, _UNSOUND), planned.run.facts, False, _UNSOUND)
    verdict = _without_ground(ground, original, claim, apart, traced)
    return Judgement(verdict, planned.run.facts, True)


_GRAPH_RUNTIMES = ("litert", "tensorflow")
_OTHER_VERSION = (
    "TFLM, {}, refuses the {:,} bytes of arena that are counted for it, and runs in more: it is of another version "
    "than the one that was measured (docs/reliability.md)"
)
_UNSOUND = "TFLM computes the original itself in more than one way"
Traced = Callable[[bytes, Model], "Trace | Run"]
"""Runs another model over the same samples."""


def _outputs_only(
    original: Original, ground: Ground, claim: Claim, planned: Planned, interpreter: ModelRunner
) -> Verdict:
    """The verdict of a runner whose arena has no room for more than the model itself."""

    def traced(data: bytes, model: Model) -> Trace | Run:
        run = interpreter.run(RunJob(data, claim.samples, LARGEST_ARENA))
        return trace_of(run.arrays, len(claim.samples)) if run.ran else run

    verdict = _compared(original, ground, claim, Trace(planned.outputs), planned.outputs, traced)
    return verdict if verdict.equal is False else replace(verdict, reason=f"outputs only: {planned.reason}")


def _against_plan(planned: Planned, said: int | None) -> str | None:
    """What speaks against the plan by itself, whatever the original computes; ``said``: what its head must be."""
    if not planned.run.ran:
        return f"the optimised model fails: {planned.reason}"
    head = planned.run.facts.get("head")
    if said is not None and head is not None and -(-said // ARENA_ALIGNMENT) != -(-head // ARENA_ALIGNMENT):
        return f"TFLM's head is {head} bytes, and the plan says {said}"
    found = planned.difference
    if found is None:
        return None
    return (
        f"the plan changes values: at its last use, tensor '{found.tensor}' is off by up to {found.max_abs_diff:g} in "
        f"sample {found.sample} from what the same graph computes with no memory shared"
    )


def _compared(
    original: Original,
    ground: Ground,
    claim: Claim,
    found: Trace,
    outputs: dict[int, list[Array]],
    traced: Traced,
) -> Verdict:
    """``found``: the optimised model's inner values; ``outputs``: what it gives."""
    assert ground.trace is not None
    against_stage = _against_rewritten(claim, found, outputs, traced)
    if isinstance(against_stage, Run):
        return _refused(original, "rewritten", against_stage)
    if against_stage is not None:
        return _differing(original, f"stripes, order or plan change values: {against_stage}")
    links = _links(original.model, claim)
    inner = _inner_difference(original, claim, links, ground.trace, found)
    restored = claim.interface.restored_outputs(outputs)
    outer = first_output_difference(ground.trace.outputs, restored, claim.tolerance)
    gap = gap_between(ground.trace.outputs, restored, claim.interface.steps)
    reason = _text(original.model, outer, inner)
    noise = None
    if claim.exactness == "approximates":
        noise = signal_to_noise(ground.trace.outputs, restored)
        if reason is None and noise < claim.least_decibels:
            reason = f"the approximation leaves {noise:.1f} dB of signal to noise, {claim.least_decibels:g} are wanted"
    compared = sum(link.before in ground.trace.tensors and link.after in found.tensors for link in links)
    return _verdict(original, ground, claim, gap, reason, noise, compared)


def _against_rewritten(claim: Claim, found: Trace, outputs: dict[int, list[Array]], traced: Traced) -> str | Run | None:
    """How the optimised model differs from its own graph before stripes, order and plan, where that is a question."""
    if claim.tolerance == EXACT or claim.rewritten is None or claim.rewritten_model is None:
        return None
    stage = traced(claim.rewritten, claim.rewritten_model)
    if isinstance(stage, Run):
        return stage
    links = _links(claim.rewritten_model, claim)
    inner = first_inner_difference(links, stage, found, claim.model)
    return _text(claim.rewritten_model, first_output_difference(stage.outputs, outputs), inner)


def _inner_difference(
    original: Original, claim: Claim, links: Sequence[Link], before: Trace, after: Trace
) -> InnerDifference | None:
    if claim.exactness == "approximates":
        exact = untouched_links(links, original.model.main, claim.approximated)
        return first_inner_difference(exact, before, after, claim.model)
    return first_inner_difference(links, before, after, claim.model, claim.tolerance)


def _links(before: Model, claim: Claim) -> tuple[Link, ...]:
    """The tensors of a model before, and those of the optimised one that hold their values, loops included."""
    inside = links_in_loops(before.main, claim.model, claim.loop_pieces)
    return links_between(before.main, claim.model.main, claim.pieces) + inside


def _without_ground(ground: Ground, original: Original, claim: Claim, apart: Trace, traced: Traced) -> Verdict:
    """No verdict on the original, but on what never changes a value, where the runtime can say that much."""
    reason = ground.reason if ground.is_sound else _UNSOUND
    silent = _silent(ground, reason)
    if claim.rewritten is None or claim.rewritten_model is None:
        return silent
    stage = traced(claim.rewritten, claim.rewritten_model)
    if isinstance(stage, Run):
        return silent
    links = _links(claim.rewritten_model, claim)
    inner = first_inner_difference(links, stage, apart, claim.model)
    text = _text(claim.rewritten_model, first_output_difference(stage.outputs, apart.outputs), inner)
    if text is not None:
        return _differing(original, f"stripes, order or plan change values: {text}")
    said = f"{reason}; the result equals the rewritten graph before its order and plan{_beside_litert(original, apart)}"
    return Verdict(0, None, 0.0, said, kernels=ground.kernels)


def _beside_litert(original: Original, apart: Trace) -> str:
    """How far TFLM's outputs of the result are from LiteRT's of the original: the two round differently."""
    other = next((original.grounds[name].trace for name in _GRAPH_RUNTIMES if name in original.grounds), None)
    if other is None or any(a[0].shape != b[0].shape for a, b in _pairs(other.outputs, apart.outputs)):
        return ""
    gap = gap_between(other.outputs, apart.outputs, {})
    return f", and differs from what LiteRT computes of the original by at most {gap.max_abs_diff:g}"


def _pairs(before: dict[int, list[Array]], after: dict[int, list[Array]]) -> list[tuple[list[Array], list[Array]]]:
    return [(values, after[at]) for at, values in before.items() if at in after]


def _text(model: Model, outer: OutputDifference | None, inner: InnerDifference | None) -> str | None:
    """One line on a difference: how far, where, and the first tensor that differs; None without any."""
    if outer is None and inner is None:
        return None
    if outer is None and inner is not None:
        return (
            f"tensor '{inner.tensor}' differs by up to {inner.max_abs_diff:g}, first in sample {inner.sample}; the "
            "outputs are the same for these inputs"
        )
    assert outer is not None
    first = f"the first tensor that differs is '{inner.tensor}'" if inner else "no inner tensor differs"
    name = model.main.outputs[outer.output].name
    size = f"differs by up to {outer.max_abs_diff:g}, first in sample {outer.sample}"
    return f"output {outer.output} '{name}' {size}; {first}"


def _silent(ground: Ground, reason: str | None = None) -> Verdict:
    return Verdict(0, None, 0.0, reason or ground.reason, kernels=ground.kernels)


def _refused(original: Original, label: str, run: Run) -> Verdict:
    why = run.missing or run.error
    return _differing(original, f"the {label} model fails where the original runs: {why}")


def _differing(original: Original, reason: str) -> Verdict:
    return Verdict(len(original.samples), False, 0.0, reason)


def _verdict(
    original: Original,
    ground: Ground,
    claim: Claim,
    gap: Gap,
    reason: str | None,
    noise: float | None,
    compared: int,
) -> Verdict:
    assert ground.trace is not None
    is_tolerant = claim.exactness == "reassociates"
    return Verdict(
        samples=len(original.samples),
        equal=reason is None,
        max_abs_diff=gap.max_abs_diff,
        reason=reason or ground.reason,
        exactness=claim.exactness,
        tolerance=asdict(FLOAT_SUMS) if is_tolerant else None,
        max_relative_diff=gap.max_relative_diff,
        max_lsb_diff=gap.max_lsb_diff,
        differing_share=gap.differing_share,
        agreeing_argmax_share=gap.agreeing_argmax_share,
        signal_to_noise=noise,
        kernels=ground.kernels,
        inner_tensors=compared,
        unproved_outputs=_too_small(original.model, ground.trace) if is_tolerant else (),
    )


def _too_small(model: Model, trace: Trace) -> tuple[str, ...]:
    """Float outputs with a channel whose largest value is below what the tolerance allows to be off."""
    names = []
    for at, values in trace.outputs.items():
        if values[0].dtype.kind == "f" and (largest_magnitudes(values) < FLOAT_SUMS.absolute).any():
            names.append(model.main.outputs[at].name)
    return tuple(names)
