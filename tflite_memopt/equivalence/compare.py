"""Original against optimised on one runtime: same inputs, compared element by element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .gap import Gap, gap_between, output_key
from .inputs import Sample
from .interface import SAME, Interface
from .runner import Run, run_models
from .tolerance import EXACT, Array, Tolerance, arrays_agree, max_abs_diff

ORIGINAL, REWRITTEN, OPTIMISED = "original", "rewritten", "optimised"


@dataclass(frozen=True)
class Claim:
    """That ``optimised`` computes what ``original`` does, within ``tolerance``.

    ``rewritten`` is ``optimised`` before what never changes a value, such as its order and plan: both must give the
    same bits. It is run where there is a tolerance, and where a runtime refuses the original. ``interface`` is what
    the optimised model takes and gives.
    """

    original: bytes
    optimised: bytes
    rewritten: bytes | None = None
    tolerance: Tolerance = EXACT
    interface: Interface = SAME


@dataclass(frozen=True)
class Samples:
    """The same inputs for the original and in the types of the optimised model."""

    original: list[Sample]
    optimised: list[Sample]


@dataclass(frozen=True)
class Difference:
    """The first output that differs: from which model's, its sample, its position among the outputs, how far."""

    against: str
    sample: int
    output: int
    max_abs_diff: float


@dataclass(frozen=True)
class Comparison:
    """The verdict of one runtime.

    ``equal`` is None when the runtime could not judge: it is not installed, or refuses the original too
    (``reason`` says which). ``gap`` is between original and optimised. ``original`` and ``optimised`` hold what the
    runtime said of its memory.
    """

    runtime: str
    samples: int
    equal: bool | None
    gap: Gap
    reason: str | None
    difference: Difference | None
    original: Run
    optimised: Run

    @property
    def max_abs_diff(self) -> float:
        """Largest difference of an output value, in the output's own units."""
        return self.gap.max_abs_diff


def compare_models(
    runtime: str,
    original: bytes,
    optimised: bytes,
    samples: list[Sample],
    arena_bytes: int,
    tolerance: Tolerance = EXACT,
) -> Comparison:
    """Run two models of one interface on ``runtime`` over the same samples and compare all outputs."""
    return check_claim(runtime, Claim(original, optimised, tolerance=tolerance), Samples(samples, samples), arena_bytes)


def check_claim(runtime: str, claim: Claim, samples: Samples, arena_bytes: int) -> Comparison:
    """Run the models of a claim in one process over the same samples and compare all outputs."""
    stages = None if claim.tolerance == EXACT else claim.rewritten
    models = {ORIGINAL: claim.original, REWRITTEN: stages, OPTIMISED: claim.optimised}
    given = {label: samples.original if label == ORIGINAL else samples.optimised for label in models}
    present = {label: model for label, model in models.items() if model is not None}
    runs = run_models(runtime, present, given, arena_bytes)
    before, after = runs[ORIGINAL], runs[OPTIMISED]
    unable = before.missing or before.error
    if unable:
        return _without_original(runtime, claim, samples.optimised, arena_bytes, runs)
    count = len(samples.original)
    failed = next((label for label, run in runs.items() if not run.ran), None)
    if failed is not None:
        why = runs[failed].missing or runs[failed].error
        reason = f"the {failed} model fails where the original runs: {why}"
        return Comparison(runtime, count, False, Gap(), reason, None, before, after)
    found = _first_difference(claim, runs)
    gap = gap_between(before.arrays, claim.interface.restored_outputs(after.arrays), claim.interface.steps)
    return Comparison(runtime, count, found is None, gap, _text(found) if found else None, found, before, after)


def _without_original(
    runtime: str, claim: Claim, samples: list[Sample], arena_bytes: int, runs: Mapping[str, Run]
) -> Comparison:
    """No verdict on the original, but on what never changes a value, where the runtime can say that much."""
    before, after = runs[ORIGINAL], runs[OPTIMISED]
    reason = before.missing or before.error
    silent = Comparison(runtime, 0, None, Gap(), reason, None, before, after)
    if claim.rewritten is None or not after.ran:
        return silent
    stage = run_models(runtime, {REWRITTEN: claim.rewritten}, {REWRITTEN: samples}, arena_bytes)[REWRITTEN]
    if not stage.ran:
        return silent
    found = _difference(REWRITTEN, stage.arrays, after.arrays, EXACT)
    if found is None:
        return replace(silent, reason=f"{reason}; the result equals the rewritten graph before its order and plan")
    return replace(silent, samples=len(samples), equal=False, reason=_text(found), difference=found)


def _first_difference(claim: Claim, runs: Mapping[str, Run]) -> Difference | None:
    """Against the rewritten model first: what differs there is no matter of rounding."""
    after = runs[OPTIMISED].arrays
    if REWRITTEN in runs:
        found = _difference(REWRITTEN, runs[REWRITTEN].arrays, after, EXACT)
        if found is not None:
            return found
    return _difference(ORIGINAL, runs[ORIGINAL].arrays, claim.interface.restored_outputs(after), claim.tolerance)


def _difference(
    against: str, before: Mapping[str, Array], after: Mapping[str, Array], tolerance: Tolerance
) -> Difference | None:
    """The first output that is out of tolerance, and the largest difference of all."""
    differing = [name for name, a in before.items() if not _agree(a, after.get(name), tolerance)]
    if not differing:
        return None
    largest = max(_distance(before[name], after.get(name)) for name in differing)
    return Difference(against, *output_key(differing[0]), largest)


def _agree(a: Array, b: Array | None, tolerance: Tolerance) -> bool:
    return b is not None and arrays_agree(a, b, tolerance)


def _distance(a: Array, b: Array | None) -> float:
    return float("inf") if b is None else max_abs_diff(a, b)


def _text(found: Difference) -> str:
    said = f"outputs differ by up to {found.max_abs_diff:g}"
    return (
        said
        if found.against == ORIGINAL
        else f"{said} from those of the {found.against} graph as it was before its order and plan"
    )
