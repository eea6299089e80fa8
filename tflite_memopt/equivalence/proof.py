"""Original against optimised on every runtime, and TFLM's own word on its memory and on the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec

from ..errors import EquivalenceError, UsageError
from ..io.reader import read_model
from ..ir.check import check_model
from ..ir.model import Graph, Model, Tensor
from ..options import Options
from .coverage import Coverage
from .external_runner import RUNNER
from .failure import NO_PROMISE, FailedProofError, Subject
from .inputs import seeded_inputs
from .interface import SAME, Interface, interface_between
from .judge import Claim, Judgement
from .judges import EXECUTE_PLANS, judge_on_all
from .limits import ProcessLimits
from .module import ModuleRunner, module_for
from .original import Original, arena_for, look_at
from .pool import Interpreters, open_interpreters
from .shapes import InferredModel, shaped_by_litert
from .stored import first_stored_difference, interface_differences
from .subgraphs import subgraph_claims
from .verdict import Basis, Verdict

Progress = Callable[[str], None]
Facts = dict[str, int | str]
FILE = "file"
"""The verdict of what needs no run."""


@dataclass(frozen=True)
class Proof:
    """Verdicts by runtime, what they rest on, and TFLM's head, tail and total (or ``error``) of both models.

    ``runner``: what the user's runner measured of the model "before" and "after", or ``error``; None without one.
    ``refusal``: why TFLM cannot run the result, None where it can or was not asked.
    """

    verdicts: dict[str, Verdict]
    basis: Basis
    tflm_before: Facts
    tflm_after: Facts
    runner: dict[str, Facts] | None = None
    refusal: str | None = None


def inspect(data: bytes, options: Options, progress: Progress) -> Original | None:
    """Look at the original before any search; None when no proof is asked for.

    Raises UsageError for wrong inputs or a wrong runner, EquivalenceError when the runner does not run what TFLM runs.
    """
    if not options.verify:
        return None
    progress(f"looking at the original on {', '.join(_asked(options))}")
    with open_for(options, read_model(data)) as interpreters:
        return inspect_on(interpreters, data, options)


def inspect_on(interpreters: Interpreters, data: bytes, options: Options) -> Original:
    """As :func:`inspect`, with interpreters that are there."""
    found = look_at(data, read_model(data), options, interpreters)
    runner, tflm = (found.grounds.get(name) for name in (RUNNER, "tflm"))
    if runner is not None and runner.trace is None and tflm is not None and tflm.trace is not None:
        raise EquivalenceError(f"the runner does not run the original, which TFLM runs here: {runner.reason}")
    return found


def infer_shapes(data: bytes, options: Options, progress: Progress) -> InferredModel:
    """The model with the shapes that LiteRT infers, where no proof is asked for."""
    progress("inferring shapes on litert")
    with open_interpreters(("litert",), _limits(options)) as interpreters:
        return shaped_by_litert(data, read_model(data), interpreters)


def prove(
    subject: Subject,
    options: Options,
    progress: Progress,
    original: Original | None = None,
    running: Interpreters | None = None,
) -> Proof:
    """Compare the optimised model with the original, and with the rewritten one if that is not exact.

    ``original`` is what :func:`inspect` found, if it was called. ``running``: interpreters that are there already; who
    opened them ends them. Raises FailedProofError when something differs that must not; EquivalenceError when no
    interpreter runs the original, since then nothing is proved, when ``options.require`` names TFLM and it did not
    execute the plan, and when there is a runner and it has no verdict.
    """
    if not options.verify:
        unmeasured: Facts = {"error": "not measured: verification is off"}
        return Proof({}, Basis(False, "verification is off", None), unmeasured, unmeasured)
    before = read_model(subject.original)
    with open_for(options, before) if running is None else nullcontext(running) as interpreters:
        original = original or look_at(subject.original, before, options, interpreters)
        optimised = read_model(subject.optimised)
        interface = interface_between(original.model, optimised)
        if options.io == "keep" and interface != SAME:
            raise EquivalenceError(
                "inputs or outputs have other types than the original's, and --io int8 was not asked for"
            )
        if interface.inputs and options.inputs is None:
            original = _in_integers(original, optimised, interface, options, interpreters)
        stored = first_stored_difference(original.model, optimised, subject.pieces, subject.loop_pieces)
        if stored is not None:
            raise FailedProofError(f"not equal: {stored}", subject)
        claim = _claim(subject, original, optimised, interface, options, interpreters.module)
        progress(f"proving equality on {', '.join(original.grounds)}: {len(original.samples)} samples")
        judgements = _judge_all(original, claim, options, interpreters)
    return _proof(subject, original, judgements, options)


def verify(first: bytes, second: bytes, options: Options, progress: Progress) -> dict[str, Verdict]:
    """Compare any two models with the same interface, runtime by runtime, and their files (key ``file``).

    Raises UsageError when their inputs or outputs differ in number, shape or type.
    """
    models = [read_model(first), read_model(second)]
    for model in models:
        check_model(model)
    _check_same_interface(models[0].main, models[1].main)
    with open_for(options, models[0]) as interpreters:
        progress(f"looking at the first model on {', '.join(_asked(options))}")
        original = look_at(first, models[0], options, interpreters)
        claim = _claim(Subject(first, second, second), original, models[1], SAME, options, interpreters.module)
        progress(f"comparing on {', '.join(original.grounds)}: {len(original.samples)} samples")
        judgements = _judge_all(original, claim, options, interpreters)
    stored = first_stored_difference(models[0], models[1], {})
    differences = [*interface_differences(*models), *([stored] if stored is not None else [])]
    in_file = Verdict(0, not differences, 0.0, "; ".join(differences) or None)
    return {FILE: in_file, **{runtime: each.verdict for runtime, each in judgements.items()}}


def open_for(options: Options, model: Model) -> AbstractContextManager[Interpreters]:
    """The interpreters that the options ask for, for as long as it is entered.

    TFLM is the target's module, where there is one and it has kernels for the model; else the wheel.
    """
    found = module_for(options.profile) if "tflm" in options.runtimes else None
    module = None if found is None else ModuleRunner(found, options.interpreter_memory)
    if module is not None and find_spec("tflite_micro") is not None and not module.knows(model):
        module.close()
        module = None
    return open_interpreters(options.runtimes, _limits(options), options.runner, options.jobs, module)


def _limits(options: Options) -> ProcessLimits:
    return ProcessLimits(options.interpreter_seconds, options.interpreter_memory)


def _asked(options: Options) -> tuple[str, ...]:
    return options.runtimes if options.runner is None else (*options.runtimes, RUNNER)


def _in_integers(
    original: Original, optimised: Model, interface: Interface, options: Options, interpreters: Interpreters
) -> Original:
    """The original over the reals of the integers that the optimised model takes, all of them, in place of others."""
    drawn = seeded_inputs(optimised, max(options.samples, len(original.samples)), options.seed)
    given = [interface.restored(sample) for sample in drawn]
    return look_at(original.data, original.model, options, interpreters, given)


def _claim(
    subject: Subject,
    original: Original,
    optimised: Model,
    interface: Interface,
    options: Options,
    module: ModuleRunner | None,
) -> Claim:
    promise = subject.promise
    if module is not None:
        promise = subject.module_promise if module.measures(options.profile) else NO_PROMISE
    return Claim(
        data=subject.optimised,
        model=optimised,
        rewritten=subject.rewritten,
        exactness=subject.exactness,
        approximated=subject.approximated,
        pieces=subject.pieces,
        interface=interface,
        samples=[interface.quantised(sample) for sample in original.samples],
        arena_bytes=max(arena_for(original.model), arena_for(optimised)),
        promises={"tflm": promise, RUNNER: subject.runner_promise},
        least_decibels=options.least_decibels,
        loop_pieces=subject.loop_pieces,
    )


def _judge_all(original: Original, claim: Claim, options: Options, interpreters: Interpreters) -> dict[str, Judgement]:
    """The entry graph, then every subgraph that it calls; what differs in one of them differs."""
    found = judge_on_all(original, claim, interpreters)
    for each in subgraph_claims(original, claim, options, interpreters):
        if each.original is None or each.claim is None:
            found = {runtime: _without(one, each.number, each.reason) for runtime, one in found.items()}
            continue
        inner = judge_on_all(each.original, each.claim, interpreters)
        found = {
            runtime: _with(one, each.number, inner[runtime]) if runtime in inner else one
            for runtime, one in found.items()
        }
    return found


def _with(whole: Judgement, number: int, inner: Judgement) -> Judgement:
    """A runtime's judgement with that of a subgraph; one that runs the whole but not the subgraph says so."""
    if not whole.verdict.equal:
        return whole
    if inner.verdict.equal is None:
        return _without(whole, number, inner.verdict.reason)
    if not inner.verdict.equal:
        reason = f"in subgraph {number}: {inner.verdict.reason}"
        return replace(
            whole, verdict=replace(whole.verdict, equal=False, reason=reason), plan_executed=False, reason=reason
        )
    counted = whole.verdict.inner_tensors + inner.verdict.inner_tensors
    return replace(whole, verdict=replace(whole.verdict, inner_tensors=counted))


def _without(whole: Judgement, number: int, reason: str | None) -> Judgement:
    said = f"inner tensors of subgraph {number} were not compared: {reason}"
    text = said if whole.verdict.reason is None else f"{whole.verdict.reason}; {said}"
    return replace(whole, verdict=replace(whole.verdict, reason=text)) if whole.verdict.equal else whole


def _proof(subject: Subject, original: Original, judgements: Mapping[str, Judgement], options: Options) -> Proof:
    verdicts = {runtime: each.verdict for runtime, each in judgements.items()}
    for runtime, verdict in verdicts.items():
        if verdict.equal is False:
            raise FailedProofError(f"not equal on {runtime}: {verdict.reason}", subject)
    if not any(verdict.equal for verdict in verdicts.values()):
        reasons = "; ".join(f"{runtime}: {verdict.reason}" for runtime, verdict in verdicts.items())
        raise EquivalenceError(
            f"equality cannot be proved, no interpreter runs the original model ({reasons}); "
            "--no-verify writes the result unproved"
        )
    if RUNNER in verdicts and not verdicts[RUNNER].equal:
        raise EquivalenceError(f"the runner has no verdict: {verdicts[RUNNER].reason}")
    basis = _basis(original, judgements, original.coverage)
    if "tflm" in options.require and not basis.plan_executed:
        raise EquivalenceError(f"--require tflm: TFLM did not execute the plan: {basis.reason}")
    before, after = _memory("tflm", original, judgements)
    on_runner = dict(zip(("before", "after"), _memory(RUNNER, original, judgements), strict=True))
    tflm = original.grounds.get("tflm")
    refusal = tflm.reason if tflm is not None and tflm.refused and not basis.plan_executed else None
    return Proof(verdicts, basis, before, after, on_runner if RUNNER in judgements else None, refusal)


def _basis(original: Original, judgements: Mapping[str, Judgement], coverage: Coverage | None) -> Basis:
    asked = {name: judgements[name] for name in EXECUTE_PLANS if name in judgements}
    executed = tuple(name for name, each in asked.items() if each.plan_executed)
    reasons = [f"{each.reason}" for each in asked.values()] or ["TFLM was not asked"]
    reason = None if executed else "; ".join(dict.fromkeys(reasons))
    notes = tuple(each.note for each in asked.values() if each.note is not None)
    return Basis(bool(executed), reason, coverage, (*original.findings, *notes), executed)


def _memory(name: str, original: Original, judgements: Mapping[str, Judgement]) -> tuple[Facts, Facts]:
    """What one TFLM measured of the original and of the optimised model."""
    judgement = judgements.get(name)
    if judgement is None:
        return {"error": "TFLM was not asked"}, {"error": "TFLM was not asked"}
    ground = original.grounds[name]
    refused: Facts = {"error": ground.reason or "TFLM gave no reason"}
    # A rewrite may be what makes TFLM take the model.
    return dict(ground.facts) or refused, dict(judgement.facts) or refused


def _check_same_interface(first: Graph, second: Graph) -> None:
    _check_same_tensors("input", first.inputs, second.inputs)
    _check_same_tensors("output", first.outputs, second.outputs)


def _check_same_tensors(side: str, first: Sequence[Tensor], second: Sequence[Tensor]) -> None:
    if len(first) != len(second):
        raise UsageError(f"the models cannot be compared: they have {len(first)} and {len(second)} {side}s")
    for at, (a, b) in enumerate(zip(first, second, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            words = [f"'{tensor.name}' {tensor.dtype.label} {list(tensor.shape)}" for tensor in (a, b)]
            raise UsageError(
                f"the models cannot be compared: {side} {at} is {words[0]} in one, {words[1]} in the other"
            )
