"""Two models on real kernels: every runtime runs both on the same inputs, and TFLM executes the plan.

The proof (``evidence/proof/``) says whether the models compute the same for all inputs. A run shows that kernels take
the file, in exactly the arena that is promised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from ...errors import EquivalenceError, ErrorKind, UsageError
from ...kernels.faults import faults_in
from ...model.analysis.macs import model_macs
from ...model.io.reader import read_model
from ...model.ir.change import Exactness
from ...model.ir.check import check_model, first_on_npu
from ...model.ir.model import Graph, Model
from ...model.ir.tensors import is_channels_last
from ...options import Options
from ..proof import Kind, Proof, Status, Streamed, prove, stream_of
from .adapter import Sample
from .baseline import LITERT, Baseline, arena_for, measure_baseline
from .external_runner import RUNNER
from .inputs import samples_for, verification_inputs
from .interface import SAME, Interface, interface_between, interface_differences
from .judge import Judged, RuntimeResult, judge_on_all, judge_streamed
from .runner import Interpreters, ProcessLimits
from .runtimes import BETWEEN
from .sequences import difference_in_sequence, windows_of
from .shapes import InferredModel, shaped_by_litert
from .subject import FailedVerificationError, Subject
from .verdict import FILE, PROOF, Basis, Verdict

Progress = Callable[[str], None]
Facts = dict[str, int | str]
WINDOWS, _LEAST_WINDOWS = 1_000, 50
"""Hops of a sliding window that are verified, and the fewest for a large model."""
_MOST_MACS = 10_000_000_000
LIMITS = ProcessLimits(300.0, 16 << 30)
"""Of each interpreter process, for one model: seconds, and bytes of address space."""


@dataclass(frozen=True)
class Verified:
    """Verdicts by runtime, their basis, and TFLM's head, tail and total (or ``error``), "before" and "after".

    ``runner``: measurements of the user's runner on both models, or ``error``; None without one.
    ``refusal``: why TFLM cannot run the result, None where it can or was not asked.
    """

    verdicts: dict[str, Verdict]
    basis: Basis
    tflm: dict[str, Facts]
    runner: dict[str, Facts] | None = None
    refusal: str | None = None


def inspect(
    data: bytes, options: Options, progress: Progress, running: Interpreters | None = None, given: bytes | None = None
) -> Baseline | None:
    """Measure the original before any search; None when no verification is asked for.

    ``running``: interpreters that are there already, by :func:`open_for`; who opened them ends them. ``given``: the
    user's file, where ``data`` was made of it: its operators are numbered as there. Raises UsageError
    for wrong inputs or a wrong runner, EquivalenceError if the runner fails on a model that TFLM runs, or if nothing
    runs it.
    """
    if not options.verify:
        return None
    model = read_model(data)
    _check_npu(model, options)
    progress(f"checking the original on {', '.join(_asked(options))}")
    with _open(options, running) as interpreters:
        named = None if given is None else read_model(given)
        found = measure_baseline(data, model, options, interpreters, named=named)
    runner, tflm = (found.runs.get(name) for name in (RUNNER, "tflm"))
    if runner is not None and runner.run is None and tflm is not None and tflm.run is not None:
        raise EquivalenceError(
            f"the runner does not run the original, which TFLM runs here: {runner.reason}", ErrorKind.RUNNER
        )
    if all(each.run is None for each in found.runs.values()):
        raise _unverifiable(found, options, {name: each.reason for name, each in found.runs.items()})
    return found


def infer_shapes(data: bytes, options: Options, progress: Progress) -> InferredModel:
    """Return the model with the shapes that LiteRT infers, where no verification is asked for."""
    progress("inferring shapes on litert")
    with Interpreters(("litert",), LIMITS) as interpreters:
        return shaped_by_litert(data, read_model(data), interpreters)


def verify_result(
    subject: Subject,
    options: Options,
    progress: Progress,
    baseline: Baseline | None = None,
    running: Interpreters | None = None,
) -> Verified:
    """Run the optimized model and the original, and compare their outputs.

    ``baseline`` is that of :func:`inspect`, if it was called; ``running`` as there. Raises FailedVerificationError
    when something differs that must not; EquivalenceError when no interpreter runs the original, since then nothing is
    verified, and when a runner has no verdict.
    """
    if not options.verify:
        unmeasured: Facts = {"error": "not measured: verification is off"}
        return Verified({}, Basis(False, "verification is off"), {"before": unmeasured, "after": unmeasured})
    before = read_model(subject.original)
    with _open(options, running) as interpreters:
        baseline = baseline or measure_baseline(subject.original, before, options, interpreters)
        optimized = read_model(subject.optimized)
        interface = interface_between(baseline.model, optimized)
        if options.io == "keep" and interface.is_converted:
            raise EquivalenceError(
                "inputs or outputs have other types than the original's, without --io int8", ErrorKind.INTERFACE
            )
        if not options.channels_last and interface.turned:
            raise EquivalenceError(
                "inputs or outputs have other shapes than the original's, without --io channels-last",
                ErrorKind.INTERFACE,
            )
        progress(f"verifying on {', '.join(baseline.runs)}: {len(baseline.samples)} samples")
        results = _judged(baseline, _candidate(subject, baseline, optimized, interface), interpreters)
    return _verification(baseline, results, options)


def verify(
    first: bytes,
    second: bytes,
    options: Options,
    progress: Progress,
    ties: tuple[tuple[int, int], ...] = (),
    channels_last: Collection[str] = (),
) -> dict[str, Verdict]:
    """Compare any two models with the same interface: by a proof for all inputs (key ``proof``), by the names and
    quantization of inputs and outputs (key ``file``), and on each runtime.

    ``ties``: of the second model, (output, input) by position: it runs in sequences as well, and the first one with
    states that are copied. ``channels_last``: names of inputs and outputs that the second one takes and gives with
    channels last, where the first one has them first. Raises UsageError when their inputs or outputs differ in number,
    shape or type.
    """
    models = [read_model(first), read_model(second)]
    for model in models:
        check_model(model)
    _check_same_interface(models[0].main, models[1].main, channels_last)
    with open_for(options) as interpreters:
        progress(f"checking the first model on {', '.join(_asked(options))}")
        baseline = measure_baseline(first, models[0], options, interpreters)
        interface = interface_between(baseline.model, models[1]) if channels_last else SAME
        proof = prove(baseline.model, models[1], turns=bool(channels_last))
        subject = Subject(first, second, exactness_of(proof), ties=ties)
        progress(f"comparing on {', '.join(baseline.runs)}: {len(baseline.samples)} samples")
        results = _judged(baseline, _candidate(subject, baseline, models[1], interface), interpreters)
    in_file = verdict_in_file(interface_differences(*models))
    runs, on_npu = {name: each.verdict for name, each in results.items()}, first_on_npu(models[0])
    if on_npu is not None and options.runner is None:
        said = f"{on_npu[0]} runs on {on_npu[1].name} alone"
        runs = {name: replace(each, reason=said) if each.equal is None else each for name, each in runs.items()}
    verdicts = {PROOF: verdict_of(proof), FILE: in_file, **runs}
    if baseline.between is not None:  # it says nothing of the second model
        between = baseline.between
        verdicts[BETWEEN] = Verdict(between.samples, None, reason=str(between), **between.gap.figures)
    return verdicts


def verify_streamed(
    kind: Kind, subject: Subject, options: Options, progress: Progress, running: Interpreters | None = None
) -> dict[str, RuntimeResult]:
    """Run the original over sequences, or windows of a signal, and one step or hop of it once for each call.

    With TFLM's facts on the original. Raises UsageError for wrong inputs. It is known to be a step or hop of it.
    """
    model, result = read_model(subject.original), read_model(subject.optimized)
    stream = stream_of(kind, result, model, subject.ties)
    assert stream is not None
    with _open(options, running) as interpreters:
        samples = _windows(model, result, stream, options) if kind == "hop" else None
        baseline = measure_baseline(subject.original, model, options, interpreters, samples)
        where, over = ", ".join(baseline.runs), "windows" if kind == "hop" else "sequences"
        progress(f"calling one {kind} at a time on {where}: {len(baseline.samples)} {over}")
        candidate = _candidate(subject, baseline, result, SAME)
        return {
            name: judge_streamed(baseline, candidate, name, baseline.runner(name, interpreters), stream)
            for name in baseline.runs
        }


def _windows(model: Model, slide: Model, stream: Streamed, options: Options) -> list[Sample]:
    """Return windows of one signal, each a hop after the one before; those inputs that a run takes make it up."""
    at = stream.image
    count = options.samples or max(_LEAST_WINDOWS, min(WINDOWS, _MOST_MACS // max(1, model_macs(model))))
    hop = slide.main.inputs[at].elements
    needed = 1 + count * hop // model.main.inputs[at].elements
    own = None if options.inputs is None else samples_for(model, options)
    return windows_of(own or verification_inputs(model, needed, options.seed), at, hop, count)


def verdict_of(proof: Proof) -> Verdict:
    """Return a proof as a verdict: none where something was not followed."""
    equal = {Status.DIFFERENT: False, Status.UNKNOWN: None}.get(proof.status, True)
    finite_only = proof.proved and proof.is_finite
    reason = None if proof.status is Status.PROVED and not finite_only else str(proof)
    return Verdict(0, equal, 0.0, reason, exactness_of(proof), finite_only=finite_only)


def verdict_in_file(differences: Iterable[str]) -> Verdict:
    """Return differences between what two files say of their interfaces as a verdict."""
    said = "; ".join(differences)
    return Verdict(0, not said, 0.0, said or None)


def exactness_of(proof: Proof) -> Exactness:
    """Return how far models that are proved equal may differ on a runtime."""
    return "reassociates" if proof.status is Status.REASSOCIATED else "exact"


def open_for(options: Options) -> Interpreters:
    """Start the interpreters that the options ask for."""
    return Interpreters(options.runtimes, LIMITS, options.runner)


def _open(options: Options, running: Interpreters | None) -> AbstractContextManager[Interpreters]:
    return open_for(options) if running is None else nullcontext(running)


def _asked(options: Options) -> tuple[str, ...]:
    return options.runtimes if options.runner is None else (*options.runtimes, RUNNER)


def _candidate(subject: Subject, baseline: Baseline, optimized: Model, interface: Interface) -> Judged:
    samples = [interface.given(sample) for sample in baseline.samples]
    arena = max(arena_for(baseline.model), arena_for(optimized))
    return Judged(subject, optimized, interface, samples, arena)


def _judged(baseline: Baseline, candidate: Judged, interpreters: Interpreters) -> dict[str, RuntimeResult]:
    """Return the results of all runtimes; of a model with ties in sequences as well."""
    results, subject = judge_on_all(baseline, candidate, interpreters), candidate.subject
    models = baseline.data, subject.optimized
    right = [name for name, each in baseline.runs.items() if each.run is not None and not each.faults]
    for name in (each for each in right if subject.ties and results[each].verdict.equal is not False):
        runner, samples = baseline.runner(name, interpreters), candidate.samples
        difference = difference_in_sequence(name, models, subject.ties, samples, candidate.tolerance, runner)
        if difference is not None:
            verdict = replace(results[name].verdict, equal=False, reason=difference)
            results[name] = replace(results[name], verdict=verdict)
    return results


def _verification(baseline: Baseline, results: Mapping[str, RuntimeResult], options: Options) -> Verified:
    verdicts = {runtime: each.verdict for runtime, each in results.items()}
    for runtime, verdict in verdicts.items():
        if verdict.equal is False:
            hint = _hint(baseline.model, options) if runtime == RUNNER else ""
            raise FailedVerificationError(f"not equal on {runtime}: {verdict.reason}{hint}", runtime)
    if not any(verdict.equal for verdict in verdicts.values()):
        raise _unverifiable(baseline, options, {runtime: verdict.reason for runtime, verdict in verdicts.items()})
    if RUNNER in verdicts and not verdicts[RUNNER].equal:
        raise EquivalenceError(f"the runner has no verdict: {verdicts[RUNNER].reason}")
    basis = _basis(baseline, results)
    on_runner = _memory(RUNNER, baseline, results) if RUNNER in results else None
    tflm = baseline.runs.get("tflm")
    refusal = tflm.reason if tflm is not None and tflm.refused and not basis.plan_executed else None
    return Verified(verdicts, basis, _memory("tflm", baseline, results), on_runner, refusal)


def _hint(model: Model, options: Options) -> str:
    """Return why a runner may differ although the proof holds: a bug in its kernels, or other kernels."""
    faults = ", ".join(map(str, faults_in(model, options.profile)))
    if faults and not options.profile.libraries:
        return f"; these kernels compute the original wrongly, too: {faults}"
    some = f"; some libraries compute the original wrongly, too: {faults}" if faults else ""
    others = "if the runner has other ones, name them with --kernels or --target"
    return f"; the plan is for the kernels {options.profile.name}: {others}{some}"


def _check_npu(model: Model, options: Options) -> None:
    """Raise EquivalenceError for operators that run on an NPU alone, unless a runner has it."""
    found = first_on_npu(model)
    if found is None or options.runner is not None:
        return
    where, npu = found
    does = (
        "places tensors anew that the NPU does not touch; its commands have addresses, so the graph and the order stay"
        if npu.has_addresses
        else "optimizes what runs on the CPU, and leaves the NPU's operators as they are"
    )
    raise EquivalenceError(
        f"{where} runs on {npu.name} alone, so nothing can be verified here: --no-verify {does}; verify then proves "
        "the result equal, and the chip has to run it",
        ErrorKind.NOT_RUN,
    )


def _unverifiable(baseline: Baseline, options: Options, reasons: Mapping[str, str | None]) -> EquivalenceError:
    """Return the error where no interpreter has verified anything. ``reasons``: by runtime."""
    said = "; ".join(f"{runtime}: {reason}" for runtime, reason in reasons.items())
    return EquivalenceError(
        f"nothing can be verified: no interpreter runs the original model ({said}); {_way_out(baseline, options)}",
        ErrorKind.NOT_RUN,
    )


def _way_out(baseline: Baseline, options: Options) -> str:
    """Return what would let an interpreter run the original: inputs that it takes, or its own kernels."""
    if options.inputs is None and not any(each.name == "CUSTOM" for each in baseline.model.main.operators):
        return "give inputs that it takes with --inputs"
    return "--no-verify writes the result without it; verify --runner runs it on a TFLM that has its kernels"


def _basis(baseline: Baseline, results: Mapping[str, RuntimeResult]) -> Basis:
    asked = {name: each for name, each in results.items() if name != LITERT}
    executed = tuple(name for name, each in asked.items() if each.plan_executed)
    reasons = [f"{each.reason}" for each in asked.values()] or ["TFLM was not asked"]
    reason = None if executed else "; ".join(dict.fromkeys(reasons))
    notes = tuple(each.note for each in asked.values() if each.note is not None)
    return Basis(bool(executed), reason, (*baseline.findings, *notes), executed)


def _memory(name: str, baseline: Baseline, results: Mapping[str, RuntimeResult]) -> dict[str, Facts]:
    """Return the memory that one TFLM measured for the original, "before", and for the optimized model, "after"."""
    if name not in results:
        return {"before": {"error": "TFLM was not asked"}, "after": {"error": "TFLM was not asked"}}
    refused: Facts = {"error": baseline.runs[name].reason or "TFLM gave no reason"}
    # A rewrite may enable TFLM to run the model.
    sides = {"before": baseline.runs[name].facts, "after": results[name].facts}
    return {side: {**(facts or refused)} for side, facts in sides.items()}


def _check_same_interface(first: Graph, second: Graph, channels_last: Collection[str]) -> None:
    for side, ones, others in (("input", first.inputs, second.inputs), ("output", first.outputs, second.outputs)):
        if len(ones) != len(others):
            raise UsageError(
                f"the models cannot be compared: they have {len(ones)} and {len(others)} {side}s", ErrorKind.INTERFACE
            )
        for at, (a, b) in enumerate(zip(ones, others, strict=True)):
            is_turned = b.name in channels_last and is_channels_last(b.shape, a.shape)
            if a.dtype is not b.dtype or not (is_turned or a.shape == b.shape):
                words = [f"'{tensor.name}' {tensor.dtype.label} {list(tensor.shape)}" for tensor in (a, b)]
                raise UsageError(
                    f"the models cannot be compared: {side} {at} is {words[0]} in one, {words[1]} in the other",
                    ErrorKind.INTERFACE,
                )
