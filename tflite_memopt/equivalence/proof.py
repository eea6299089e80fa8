"""Original against optimised on every runtime, and TFLM's own word on its memory and on the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..errors import EquivalenceError, UsageError
from ..io.reader import read_model
from ..ir.check import check_model
from ..ir.model import Graph, Model, Tensor
from ..options import Options
from .coverage import Coverage
from .failure import FailedProofError, Subject
from .inputs import seeded_inputs
from .interface import SAME, Interface, interface_between
from .judge import Claim, Judgement, judge_graph, judge_on_tflm
from .limits import ProcessLimits
from .original import Original, arena_for, look_at
from .pool import Interpreters, open_interpreters
from .shapes import InferredModel, shaped_by_litert
from .stored import first_stored_difference, interface_differences
from .verdict import Basis, Verdict

Progress = Callable[[str], None]
FILE = "file"
"""The verdict of what needs no run."""


@dataclass(frozen=True)
class Proof:
    """Verdicts by runtime, what they rest on, and TFLM's head, tail and total (or ``error``) of both models."""

    verdicts: dict[str, Verdict]
    basis: Basis
    tflm_before: dict[str, int | str]
    tflm_after: dict[str, int | str]


def inspect(data: bytes, options: Options, progress: Progress) -> Original | None:
    """Look at the original before any search; None when no proof is asked for. Raises UsageError for wrong inputs."""
    if not options.verify:
        return None
    progress(f"looking at the original on {', '.join(options.runtimes)}")
    with open_interpreters(options.runtimes, limits_of(options)) as interpreters:
        return look_at(data, read_model(data), options, interpreters)


def infer_shapes(data: bytes, options: Options, progress: Progress) -> InferredModel:
    """The model with the shapes that LiteRT infers, where no proof is asked for."""
    progress("inferring shapes on litert")
    with open_interpreters(("litert",), limits_of(options)) as interpreters:
        return shaped_by_litert(data, read_model(data), interpreters)


def prove(subject: Subject, options: Options, progress: Progress, original: Original | None = None) -> Proof:
    """Compare the optimised model with the original, and with the rewritten one if that is not exact.

    ``original`` is what :func:`inspect` found, if it was called. Raises FailedProofError when something differs that
    must not; EquivalenceError when no interpreter runs the original, since then nothing is proved, and when
    ``options.require`` names TFLM and it did not execute the plan.
    """
    if not options.verify:
        unmeasured: dict[str, int | str] = {"error": "not measured: verification is off"}
        return Proof({}, Basis(False, "verification is off", None), unmeasured, unmeasured)
    with open_interpreters(options.runtimes, limits_of(options)) as interpreters:
        original = original or look_at(subject.original, read_model(subject.original), options, interpreters)
        optimised = read_model(subject.optimised)
        interface = interface_between(original.model, optimised)
        if options.io == "keep" and interface != SAME:
            raise EquivalenceError(
                "inputs or outputs have other types than the original's, and --io int8 was not asked for"
            )
        if interface.inputs and options.inputs is None:
            original = _in_integers(original, optimised, interface, options, interpreters)
        stored = first_stored_difference(original.model, optimised, subject.pieces)
        if stored is not None:
            raise FailedProofError(f"not equal: {stored}", subject)
        claim = _claim(subject, original, optimised, interface, options)
        progress(f"proving equality on {', '.join(original.grounds)}: {len(original.samples)} samples")
        judgements = _judge(original, claim, interpreters)
    return _proof(subject, original, judgements, options)


def verify(first: bytes, second: bytes, options: Options, progress: Progress) -> dict[str, Verdict]:
    """Compare any two models with the same interface, runtime by runtime, and their files (key ``file``).

    Raises UsageError when their inputs or outputs differ in number, shape or type.
    """
    models = [read_model(first), read_model(second)]
    for model in models:
        check_model(model)
    _check_same_interface(models[0].main, models[1].main)
    with open_interpreters(options.runtimes, limits_of(options)) as interpreters:
        progress(f"looking at the first model on {', '.join(options.runtimes)}")
        original = look_at(first, models[0], options, interpreters)
        claim = _claim(Subject(first, second, second), original, models[1], SAME, options)
        progress(f"comparing on {', '.join(original.grounds)}: {len(original.samples)} samples")
        judgements = _judge(original, claim, interpreters)
    stored = first_stored_difference(models[0], models[1], {})
    differences = [*interface_differences(*models), *([stored] if stored is not None else [])]
    in_file = Verdict(0, not differences, 0.0, "; ".join(differences) or None)
    return {FILE: in_file, **{runtime: each.verdict for runtime, each in judgements.items()}}


def limits_of(options: Options) -> ProcessLimits:
    """The limits of interpreter processes that the options set."""
    return ProcessLimits(options.interpreter_seconds, options.interpreter_memory)


def _in_integers(
    original: Original, optimised: Model, interface: Interface, options: Options, interpreters: Interpreters
) -> Original:
    """The original over the reals of the integers that the optimised model takes, all of them, in place of others."""
    drawn = seeded_inputs(optimised, max(options.samples, len(original.samples)), options.seed)
    given = [interface.restored(sample) for sample in drawn]
    return look_at(original.data, original.model, options, interpreters, given)


def _claim(subject: Subject, original: Original, optimised: Model, interface: Interface, options: Options) -> Claim:
    return Claim(
        data=subject.optimised,
        model=optimised,
        rewritten=subject.rewritten,
        rewritten_model=read_model(subject.rewritten),
        exactness=subject.exactness,
        approximated=subject.approximated,
        pieces=subject.pieces,
        interface=interface,
        samples=[interface.quantised(sample) for sample in original.samples],
        arena_bytes=max(arena_for(original.model), arena_for(optimised)),
        required_bytes=subject.required_bytes,
        head=subject.head,
        least_decibels=options.least_decibels,
    )


def _judge(original: Original, claim: Claim, interpreters: Interpreters) -> dict[str, Judgement]:
    """By runtime, side by side in their processes."""

    def judge(runtime: str) -> Judgement:
        if runtime == "tflm":
            return judge_on_tflm(original, claim, interpreters)
        return judge_graph(runtime, original, claim, interpreters)

    runtimes = list(original.grounds)
    with ThreadPoolExecutor(max_workers=len(runtimes)) as pool:
        return dict(zip(runtimes, pool.map(judge, runtimes), strict=True))


def _proof(subject: Subject, original: Original, judgements: Mapping[str, Judgement], options: Options) -> Proof:
    verdicts = {runtime: each.verdict for runtime, each in judgements.items()}
    for runtime, verdict in verdicts.items():
        if verdict.equal is False:
            raise FailedProofError(f"not equal on {runtime}: {verdict.reason}", subject)
    if not any(verdict.equal for verdict in verdicts.values()):
        reasons = "; ".join(f"{runtime}: {verdict.reason}" for runtime, verdict in verdicts.items())
        raise EquivalenceError(f"equality cannot be proved, no interpreter runs the original model ({reasons})")
    basis = _basis(original, judgements, original.coverage)
    if "tflm" in options.require and not basis.plan_executed:
        raise EquivalenceError(f"--require tflm: TFLM did not execute the plan: {basis.reason}")
    return Proof(verdicts, basis, *_tflm_memory(original, judgements))


def _basis(original: Original, judgements: Mapping[str, Judgement], coverage: Coverage | None) -> Basis:
    tflm = judgements.get("tflm")
    if tflm is None:
        return Basis(False, "TFLM was not asked", coverage, original.findings)
    return Basis(tflm.plan_executed, tflm.reason, coverage, original.findings)


def _tflm_memory(
    original: Original, judgements: Mapping[str, Judgement]
) -> tuple[dict[str, int | str], dict[str, int | str]]:
    tflm = judgements.get("tflm")
    if tflm is None:
        return {"error": "TFLM was not asked"}, {"error": "TFLM was not asked"}
    ground = original.grounds["tflm"]
    refused: dict[str, int | str] = {"error": ground.reason or "TFLM gave no reason"}
    # A rewrite may be what makes TFLM take the model.
    return dict(ground.facts) or refused, dict(tflm.facts) or refused


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
