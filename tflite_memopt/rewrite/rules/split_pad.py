"""A padding of a channel concatenation that adds no channels: one padding for each part.

    a --+                          a -- PAD --+
        +-- CONCATENATION -- PAD =>           +-- CONCATENATION
    b --+                          b -- PAD --+

Exact: PAD and PADV2 write one value all over the border, MIRROR_PAD values of the same channel. Sources: TFLM
reference/pad.h and micro/kernels/mirror_pad.cc. The paddings are one constant for all parts.
"""

from __future__ import annotations

from ...ir.constants import integers
from ...ir.model import Tensor
from ..channelwise import reads_once, reason_against_parts, run_on_data
from ..concatenation import CONCATENATION, ROLE
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact


def _refuse(match: Match) -> str | None:
    reason = reason_against_parts(match)
    if reason is not None:
        return reason
    if not reads_once(match) or any(not _is_one_value(tensor) for tensor in match.anchor.inputs[2:]):
        return "its value is not one for all channels"
    amounts = integers(match.anchor.inputs[1]) if len(match.anchor.inputs) > 1 else None
    if amounts is None or amounts.size != 2 * len(match[ROLE].outputs[0].shape):
        return "its paddings are not constant, or not two for each dimension"
    if amounts[-2:].any():
        return "it pads the channels"
    return None


def _is_one_value(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.elements == 1


SPLIT_PAD = Rule(
    "split_pad", Pattern("pad", ("PAD", "PADV2", "MIRROR_PAD"), {0: CONCATENATION}), _refuse, always_exact, run_on_data
)
