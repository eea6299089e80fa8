"""A resize of a channel concatenation, or a reduction over other dimensions than the channels: one for each part.

    a --+                             a -- RESIZE --+
        +-- CONCATENATION -- RESIZE =>              +-- CONCATENATION
    b --+                             b -- RESIZE --+

Exact: a channel of the output depends on the same channel of the input, and sums go through the pixels in the same
order. Sources: TFLM reference/resize_bilinear.h, reference/resize_nearest_neighbor.h, reference/reduce.h (Mean,
ReduceGeneric, QuantizedMeanOrSumExtraArgs). Which loop they take depends on the rank and the axes, and on no size.
"""

from __future__ import annotations

from ...ir.constants import integers
from ..channelwise import reads_once, reason_against_parts, run_on_data
from ..concatenation import CONCATENATION, ROLE
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact

_RESIZES = ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
_REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")


def _refuse(match: Match) -> str | None:
    reason = reason_against_parts(match)
    if reason is not None:
        return reason
    if not reads_once(match) or len(match.anchor.inputs) != 2:
        return "it does not have one input and one operand"
    return _reason_against_axes(match) if match.anchor.name in _REDUCTIONS else None


def _reason_against_axes(match: Match) -> str | None:
    axes = integers(match.anchor.inputs[1])
    rank = len(match[ROLE].outputs[0].shape)
    if axes is None:
        return "its axes are not constant"
    if any(axis % rank == rank - 1 for axis in axes.tolist()):
        return "it reduces the channels"
    return None


SPLIT_SPATIAL = Rule(
    "split_spatial",
    Pattern("spatial", (*_RESIZES, *_REDUCTIONS), {0: CONCATENATION}),
    _refuse,
    always_exact,
    run_on_data,
)
