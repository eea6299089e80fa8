"""The verdict of one runtime on equality, and the basis of all verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROOF, PLAN, FILE, ON_TFLM = "proof", "plan", "file", "second on tflm"
"""Names of the verdicts that need no run: of the proofs for all inputs, of models and of memory plans, of the
interfaces in the files, and of what TFLM makes of the second one, where it does not run that rightly."""


@dataclass(frozen=True)
class Verdict:
    """The verdict of one runtime on equality.

    ``equal`` means: the outputs are the same to the bit when ``exactness`` is "exact", within ``tolerance`` when it is
    "reassociates", and of enough ``signal_to_noise`` when it is "approximates".
    """

    samples: int
    """Number of inputs that were compared."""
    equal: bool | None
    """True if both models compute the same; null if the runtime could not judge."""
    max_abs_diff: float
    """Largest difference of an output, in units of the output."""
    reason: str | None
    """The difference, or why there is no verdict; null without either."""
    exactness: str = "exact"
    """"exact": the same bits. "reassociates": within the tolerance. "approximates": see the figures."""
    tolerance: dict[str, float] | None = None
    """Allowed absolute and relative difference; null for none."""
    max_relative_diff: float | None = None
    """Largest difference of a float output, as a share of the largest value; null without one."""
    max_lsb_diff: float | None = None
    """Largest difference of an integer output, in its steps; null without one."""
    differing_share: float = 0.0
    """Share of output values that differ, from 0 to 1."""
    agreeing_argmax_share: float | None = None
    """Share of samples with the same largest score, from 0 to 1; null without scores."""
    signal_to_noise: float | None = None
    """Signal-to-noise ratio of an approximation, in decibels; null otherwise."""
    kernels: str | None = None
    """Kernels of the runtime that ran, if it has several; null: its only ones."""
    finite_only: bool = False
    """True for a proof that holds for finite floats that do not overflow on the way; false: for any."""


def contradiction(verdicts: Mapping[str, Verdict]) -> str | None:
    """Return how a runtime contradicts the proof, in words; None where nothing does.

    One that refuses a file does not; nor does a difference on TFLM, where the memory plan is not proved, nor any where
    the proof is of finite values alone: values on the way, which no runtime gives, may have overflowed.
    """
    proved = all(verdicts[name].equal is not False for name in (PROOF, PLAN) if name in verdicts)
    if PROOF not in verdicts or not verdicts[PROOF].equal or verdicts[PROOF].finite_only or not proved:
        return None
    has_plan = PLAN not in verdicts or verdicts[PLAN].equal
    runs = {name: each for name, each in verdicts.items() if name not in (PROOF, PLAN, FILE, ON_TFLM)}
    differing = [name for name, each in runs.items() if each.equal is False and each.differing_share]
    wrong = [name for name in differing if has_plan or name == "litert"]
    if not wrong:
        return None
    reasons = "; ".join(f"{name}: {verdicts[name].reason}" for name in wrong)
    return f"the proof says equal, and {' and '.join(wrong)} differ: a fault of this program ({reasons})"


@dataclass(frozen=True)
class Basis:
    """The basis of a verification. If no TFLM ran the plan, the result is verified as a graph only."""

    plan_executed: bool
    """True if TFLM ran the plan."""
    reason: str | None
    """The reason if it did not; null otherwise."""
    findings: tuple[str, ...] = ()
    """Defects of the original, the most serious first, and notes on a runtime, in sentences."""
    executed_by: tuple[str, ...] = ()
    """Runtimes that ran the plan: "tflm" on this computer, "runner" by the user's --runner."""
