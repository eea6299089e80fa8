"""A pool of a channel concatenation: one pool for each part.

    a --+                           a -- POOL --+
        +-- CONCATENATION -- POOL =>            +-- CONCATENATION
    b --+                           b -- POOL --+

Exact: a window holds values of one channel, and all channels are quantised alike. Sources: TFLM
reference/pooling.h (AveragePool, MaxPool, L2Pool) and reference/integer_ops/pooling.h, which loop over channels
around the window.
"""

from __future__ import annotations

from ..channelwise import reads_once, reason_against_parts, run_on_data
from ..concatenation import CONCATENATION
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact


def _refuse(match: Match) -> str | None:
    reason = reason_against_parts(match)
    if reason is not None:
        return reason
    source, output = match.anchor.inputs[0], match.anchor.outputs[0]
    if source is None or not reads_once(match) or not len(source.shape) == len(output.shape) == 4:
        return "its tensors are not of 4 dimensions"
    return None


SPLIT_POOLING = Rule(
    "split_pooling",
    Pattern("pool", ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), {0: CONCATENATION}),
    _refuse,
    always_exact,
    run_on_data,
)
