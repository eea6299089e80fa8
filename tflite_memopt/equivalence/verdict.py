"""The verdict of one runtime on equality, and the basis of all verdicts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """The verdict of one runtime on equality; ``equal`` is None if it could not judge, for ``reason``.

    ``equal`` means: the outputs are the same to the bit when ``exactness`` is "exact", within ``tolerance`` when it is
    "reassociates", and of enough ``signal_to_noise`` when it is "approximates".
    The differences are those of outputs from the original's: the largest, in units of the output; of float outputs, as
    a share of the largest magnitude in the tensor; of integer outputs, in steps; and the share of values that differ.
    ``agreeing_argmax_share``: how often the largest of a row of scores is the same (None: no such output).
    ``signal_to_noise``: in dB, of an approximation. ``kernels``: which of the runtime's were used, of several.
    """

    samples: int
    equal: bool | None
    max_abs_diff: float
    reason: str | None
    exactness: str = "exact"
    tolerance: dict[str, float] | None = None
    max_relative_diff: float | None = None
    max_lsb_diff: float | None = None
    differing_share: float = 0.0
    agreeing_argmax_share: float | None = None
    signal_to_noise: float | None = None
    kernels: str | None = None


@dataclass(frozen=True)
class Basis:
    """The basis of a verification.

    ``plan_executed``: TFLM ran the plan; ``executed_by`` names where: in the wheel ("tflm"), on the user's runner
    ("runner"). If nowhere, ``reason`` says why, and the result is verified as a graph only. ``findings``: faults of the
    original itself, most serious first, and notes on a runtime.
    """

    plan_executed: bool
    reason: str | None
    findings: tuple[str, ...] = ()
    executed_by: tuple[str, ...] = ()
