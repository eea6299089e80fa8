"""Original against optimised on every runtime, and TFLM's own word on its memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .analysis.alignment import aligned
from .analysis.lifetimes import in_head
from .equivalence.compare import Comparison, compare_models
from .equivalence.inputs import Sample, inputs_from_npz, seeded_inputs
from .equivalence.locate import Suspects, first_differing_tensor
from .equivalence.runner import RUNTIMES
from .errors import EquivalenceError, UsageError
from .io.reader import read_model
from .io.writer import write_model
from .ir.check import check_model
from .ir.dtype import DType
from .ir.model import Model
from .options import Options
from .report.model import Verdict

_SPARE_ARENA = 8 << 20
"""Bytes on top of all tensors, for TFLM's structures and scratch; never touched pages cost nothing."""
_NO_UINT8 = "TFLM no longer has kernels for uint8 activations (quantise to int8 to run there)"


@dataclass(frozen=True)
class Proof:
    """Verdicts by runtime, and TFLM's head, tail and total (or ``error``) of both models."""

    verdicts: dict[str, Verdict]
    tflm_before: dict[str, int | str]
    tflm_after: dict[str, int | str]


def prove(original: bytes, optimised: bytes, model: Model, options: Options, progress: Callable[[str], None]) -> Proof:
    """Run both models and compare.

    Raises EquivalenceError when a runtime finds a difference, or when none can run the original, since
    then nothing is proved.
    """
    if not options.verify:
        unmeasured: dict[str, int | str] = {"error": "not measured: verification is off"}
        return Proof({}, unmeasured, unmeasured)
    samples = _samples(model, options)
    comparisons = compare_on(options.runtimes, original, optimised, model, samples, progress)
    verdicts = {each.runtime: verdict_of(each, model) for each in comparisons}
    for each in comparisons:
        if each.equal is False:
            progress(f"looking for the first differing tensor on {each.runtime}")
            raise EquivalenceError(difference_text(each, original, optimised, model, samples))
    if not any(each.equal for each in comparisons):
        reasons = "; ".join(f"{each.runtime}: {each.reason}" for each in comparisons)
        raise EquivalenceError(f"equality cannot be proved, no interpreter runs the original model ({reasons})")
    tflm = next((each for each in comparisons if each.runtime == "tflm"), None)
    if tflm is None:
        return Proof(verdicts, {"error": "TFLM was not asked"}, {"error": "TFLM was not asked"})
    if not tflm.original.ran:
        refused: dict[str, int | str] = {"error": verdicts["tflm"].reason or "TFLM gave no reason"}
        return Proof(verdicts, refused, refused)
    return Proof(verdicts, dict(tflm.original.facts), dict(tflm.optimised.facts))


def verify(first: bytes, second: bytes, options: Options, progress: Callable[[str], None]) -> dict[str, Verdict]:
    """Compare any two models with the same interface; the reason of a difference names the first tensor.

    Raises UsageError when their inputs or outputs differ in number, shape or type.
    """
    models = [read_model(first), read_model(second)]
    for model in models:
        check_model(model)
    for side in ("inputs", "outputs"):
        shapes = [[(t.dtype.label, list(t.shape)) for t in getattr(model.main, side)] for model in models]
        if shapes[0] != shapes[1]:
            raise UsageError(f"the models cannot be compared: their {side} are {shapes[0]} and {shapes[1]}")
    samples = _samples(models[0], options)
    verdicts = {}
    for each in compare_on(options.runtimes, first, second, models[0], samples, progress):
        verdict = verdict_of(each, models[0])
        if each.equal is False:
            reason = difference_text(each, first, second, models[0], samples)
            verdict = Verdict(verdict.samples, False, verdict.max_abs_diff, reason)
        verdicts[each.runtime] = verdict
    return verdicts


def compare_on(
    runtimes: Sequence[str],
    original: bytes,
    optimised: bytes,
    model: Model,
    samples: list[Sample],
    progress: Callable[[str], None],
) -> list[Comparison]:
    """One comparison a runtime, side by side in subprocesses, in the order of ``runtimes``."""
    unknown = [runtime for runtime in runtimes if runtime not in RUNTIMES]
    if unknown:
        raise UsageError(f"unknown runtime '{unknown[0]}'; choose from {', '.join(RUNTIMES)}")
    progress(f"proving equality on {', '.join(runtimes)}: {len(samples)} samples")

    def compare(runtime: str) -> Comparison:
        return compare_models(runtime, original, optimised, samples, arena_for(model))

    with ThreadPoolExecutor(max_workers=len(runtimes)) as pool:
        return list(pool.map(compare, runtimes))


def difference_text(found: Comparison, original: bytes, optimised: bytes, model: Model, samples: list[Sample]) -> str:
    """One line on a difference: runtime, size, sample, output, and the first tensor that differs."""
    if found.difference is None:
        return f"not equal on {found.runtime}: {found.reason}"
    at = found.difference
    pair, codec = (original, optimised), (read_model, write_model)
    needed = samples[: at.sample + 1]
    tensor = first_differing_tensor(Suspects(found.runtime, pair, needed, arena_for(model), codec))
    output = model.main.outputs[at.output].name
    first = f"the first tensor that differs is '{tensor}'" if tensor else "no inner tensor differs by name"
    return (
        f"not equal on {found.runtime}: output {at.output} '{output}' differs by up to {found.max_abs_diff:g}, "
        f"first in sample {at.sample}; {first}"
    )


def verdict_of(comparison: Comparison, model: Model) -> Verdict:
    """A comparison in the report's words, with the reason that TFLM itself leaves out."""
    reason = comparison.reason
    if comparison.runtime == "tflm" and comparison.equal is None and _is_uint8(model):
        reason = f"{_NO_UINT8}; it says: {reason}"
    return Verdict(comparison.samples, comparison.equal, comparison.max_abs_diff, reason)


def _is_uint8(model: Model) -> bool:
    return any(in_head(tensor) and tensor.dtype is DType.UINT8 for tensor in model.main.tensors)


def arena_for(model: Model) -> int:
    """An arena in bytes in which any order and plan of the model fits: no sharing at all, and room to spare."""
    heads = [tensor for graph in model.graphs for tensor in graph.tensors if in_head(tensor)]
    structures = 1024 * sum(len(graph.tensors) + len(graph.operators) for graph in model.graphs)
    return aligned(2 * sum(aligned(tensor.nbytes) for tensor in heads) + structures + _SPARE_ARENA)


def _samples(model: Model, options: Options) -> list[Sample]:
    if options.inputs is not None:
        return inputs_from_npz(options.inputs, model)
    return seeded_inputs(model, options.samples, options.seed)
