"""Original against optimised on every runtime, and TFLM's own figures of their memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

from ..errors import EquivalenceError, UsageError
from ..graph.alignment import aligned
from ..io.reader import read_model
from ..io.writer import write_model
from ..ir.change import Exactness
from ..ir.check import check_model
from ..ir.dtype import DType
from ..ir.head import in_head
from ..ir.model import Graph, Model, Tensor
from ..options import Options
from .compare import ORIGINAL, REWRITTEN, Claim, Comparison, Difference, Samples, check_claim
from .inputs import Sample, inputs_from_npz, seeded_inputs
from .interface import SAME, Interface, interface_between
from .locate import Suspects, first_differing_tensor
from .runner import RUNTIMES
from .tolerance import ANY, EXACT, FLOAT_SUMS, Tolerance
from .verdict import Verdict

_SPARE_ARENA = 8 << 20
"""Bytes on top of all tensors, for TFLM's structures and scratch; never touched pages cost nothing."""
_NO_UINT8 = "TFLM no longer has kernels for uint8 activations (quantise to int8 to run there)"
_TOLERANCES: Mapping[Exactness, Tolerance] = {"exact": EXACT, "reassociates": FLOAT_SUMS, "approximates": ANY}
"""Between the original and the optimised model, by the loosest rewrite that was applied."""


@dataclass(frozen=True)
class Subject:
    """What is to be proved: the bytes of three models, and how far the rewriting may have changed values.

    ``rewritten`` is ``optimised`` before it was cut into stripes, ordered and planned.
    """

    original: bytes
    rewritten: bytes
    optimised: bytes
    exactness: Exactness = "exact"


@dataclass(frozen=True)
class Proof:
    """Verdicts by runtime, and TFLM's head, tail and total (or ``error``) of both models."""

    verdicts: dict[str, Verdict]
    tflm_before: dict[str, int | str]
    tflm_after: dict[str, int | str]


def prove(subject: Subject, options: Options, progress: Callable[[str], None]) -> Proof:
    """Run the models and compare: the optimised one with the original, and with the rewritten one if that is not exact.

    Raises EquivalenceError when a runtime finds a difference that may not be, or when none can run the original,
    since then nothing is proved.
    """
    if not options.verify:
        unmeasured: dict[str, int | str] = {"error": "not measured: verification is off"}
        return Proof({}, unmeasured, unmeasured)
    original = read_model(subject.original)
    trial = _trial(subject, original, options)
    comparisons = _compare_on(options.runtimes, trial, progress)
    verdicts = {each.runtime: _verdict_of(each, original, subject.exactness) for each in comparisons}
    for each in comparisons:
        if each.equal is False:
            progress(f"looking for the first differing tensor on {each.runtime}")
            raise EquivalenceError(_difference_text(each, trial))
    if not any(each.equal for each in comparisons):
        reasons = "; ".join(f"{each.runtime}: {each.reason}" for each in comparisons)
        raise EquivalenceError(f"equality cannot be proved, no interpreter runs the original model ({reasons})")
    tflm = next((each for each in comparisons if each.runtime == "tflm"), None)
    if tflm is None:
        return Proof(verdicts, {"error": "TFLM was not asked"}, {"error": "TFLM was not asked"})
    if not tflm.original.ran:
        refused: dict[str, int | str] = {"error": verdicts["tflm"].reason or "TFLM gave no reason"}
        # A rewrite may be what makes TFLM take the model.
        return Proof(verdicts, refused, dict(tflm.optimised.facts) if tflm.optimised.ran else refused)
    return Proof(verdicts, dict(tflm.original.facts), dict(tflm.optimised.facts))


def verify(first: bytes, second: bytes, options: Options, progress: Callable[[str], None]) -> dict[str, Verdict]:
    """Compare any two models with the same interface; the reason of a difference names the first tensor.

    Raises UsageError when their inputs or outputs differ in number, shape or type.
    """
    models = [read_model(first), read_model(second)]
    for model in models:
        check_model(model)
    _check_same_interface(models[0].main, models[1].main)
    samples = _own_or_seeded(models[0], options)
    trial = _Trial(Claim(first, second), Samples(samples, samples), arena_for(models[0]), _output_names(models[0]))
    verdicts = {}
    for each in _compare_on(options.runtimes, trial, progress):
        verdict = _verdict_of(each, models[0])
        if each.equal is False:
            verdict = replace(verdict, reason=_difference_text(each, trial))
        verdicts[each.runtime] = verdict
    return verdicts


def arena_for(model: Model) -> int:
    """An arena in bytes in which any order and plan of the model fits: no sharing at all, and room to spare."""
    heads = [tensor for graph in model.graphs for tensor in graph.tensors if in_head(tensor)]
    structures = 1024 * sum(len(graph.tensors) + len(graph.operators) for graph in model.graphs)
    return aligned(2 * sum(aligned(tensor.nbytes) for tensor in heads) + structures + _SPARE_ARENA)


@dataclass(frozen=True)
class _Trial:
    """A claim with what it takes to check it; ``outputs`` are the original's names."""

    claim: Claim
    samples: Samples
    arena_bytes: int
    outputs: tuple[str, ...]


def _trial(subject: Subject, original: Model, options: Options) -> _Trial:
    optimised = read_model(subject.optimised)
    interface = interface_between(original, optimised)
    if options.io == "keep" and interface != SAME:
        raise EquivalenceError(
            "inputs or outputs have other types than the original's, and --io int8 was not asked for"
        )
    claim = Claim(subject.original, subject.optimised, subject.rewritten, _TOLERANCES[subject.exactness], interface)
    arena = max(arena_for(original), arena_for(optimised))
    return _Trial(claim, _samples(original, optimised, interface, options), arena, _output_names(original))


def _samples(original: Model, optimised: Model, interface: Interface, options: Options) -> Samples:
    """The user's own are in the original's types; random ones are drawn in those of the optimised model."""
    if not interface.inputs:
        same = _own_or_seeded(original, options)
        return Samples(same, same)
    if options.inputs is not None:
        given = inputs_from_npz(options.inputs, original)
    else:
        given = [interface.restored(sample) for sample in seeded_inputs(optimised, options.samples, options.seed)]
    return Samples(given, [interface.quantised(sample) for sample in given])


def _own_or_seeded(model: Model, options: Options) -> list[Sample]:
    if options.inputs is not None:
        return inputs_from_npz(options.inputs, model)
    return seeded_inputs(model, options.samples, options.seed)


def _output_names(model: Model) -> tuple[str, ...]:
    return tuple(tensor.name for tensor in model.main.outputs)


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


def _compare_on(runtimes: Sequence[str], trial: _Trial, progress: Callable[[str], None]) -> list[Comparison]:
    """One comparison a runtime, side by side in subprocesses, in the order of ``runtimes``."""
    unknown = [runtime for runtime in runtimes if runtime not in RUNTIMES]
    if unknown:
        raise UsageError(f"unknown runtime '{unknown[0]}'; choose from {', '.join(RUNTIMES)}")
    progress(f"proving equality on {', '.join(runtimes)}: {len(trial.samples.original)} samples")

    def compare(runtime: str) -> Comparison:
        return check_claim(runtime, trial.claim, trial.samples, trial.arena_bytes)

    with ThreadPoolExecutor(max_workers=len(runtimes)) as pool:
        return list(pool.map(compare, runtimes))


def _difference_text(found: Comparison, trial: _Trial) -> str:
    """One line on a difference: runtime, size, sample, output, and the first tensor that differs."""
    at = found.difference
    if at is None:
        return f"not equal on {found.runtime}: {found.reason}"
    tensor = first_differing_tensor(_suspects(found.runtime, at, trial))
    first = f"the first tensor that differs is '{tensor}'" if tensor else "no inner tensor differs by name"
    blame = "" if at.against == ORIGINAL else "stripes, order or plan change values: "
    return (
        f"not equal on {found.runtime}: {blame}output {at.output} '{trial.outputs[at.output]}' differs by up to "
        f"{at.max_abs_diff:g}, first in sample {at.sample}; {first}"
    )


def _suspects(runtime: str, at: Difference, trial: _Trial) -> Suspects:
    claim, needed = trial.claim, slice(at.sample + 1)
    before, given, tolerance = claim.original, trial.samples.original, claim.tolerance
    if at.against == REWRITTEN and claim.rewritten is not None:
        before, given, tolerance = claim.rewritten, trial.samples.optimised, EXACT
    samples = given[needed], trial.samples.optimised[needed]
    codec = read_model, write_model
    return Suspects(runtime, (before, claim.optimised), samples, trial.arena_bytes, codec, tolerance)


def _verdict_of(comparison: Comparison, original: Model, exactness: Exactness = "exact") -> Verdict:
    """A comparison as the report shows it, with the reason that TFLM itself leaves out."""
    reason, gap = comparison.reason, comparison.gap
    if comparison.runtime == "tflm" and comparison.equal is None and _is_uint8(original):
        reason = f"{_NO_UINT8}; it says: {reason}"
    return Verdict(
        comparison.samples,
        comparison.equal,
        gap.max_abs_diff,
        reason,
        exactness,
        asdict(FLOAT_SUMS) if exactness == "reassociates" else None,
        gap.max_relative_diff,
        gap.max_lsb_diff,
        gap.differing_share,
        gap.agreeing_argmax_share,
    )


def _is_uint8(model: Model) -> bool:
    return any(in_head(tensor) and tensor.dtype is DType.UINT8 for tensor in model.main.tensors)
