"""What one runtime says of equality."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What one runtime says of equality; ``equal`` is None when it could not judge, for ``reason``.

    ``equal`` means: to the bit when ``exactness`` is "exact"; within ``tolerance`` when it is "reassociates"; when it
    is "approximates", that stripes, order and plan change nothing, however far off the rewritten graph itself is.
    The differences are those of outputs from the original's: the largest, in units of the output; of float outputs, as
    a share of the largest magnitude in the tensor; of integer outputs, in steps; and the share of values that differ.
    ``agreeing_argmax_share``: how often the largest of a row of scores is the same (None: no such output).
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
