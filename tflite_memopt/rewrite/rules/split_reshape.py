"""A reshape of a channel concatenation that leaves the channels alone: one reshape for each part.

    a --+                              a -- RESHAPE --+
        +-- CONCATENATION -- RESHAPE =>               +-- CONCATENATION
    b --+                              b -- RESHAPE --+

Exact: the elements stay in their order, so that a last dimension of the same size is the same dimension. The new
operators are views and cost nothing. Convolutions along one axis are made of these: EXPAND_DIMS or RESHAPE to an image
of one row, CONV_2D, and RESHAPE or SQUEEZE back.
"""

from __future__ import annotations

import numpy as np

from ...ir.editor import Editor
from ..channelwise import parts_of, reads_once, reason_against_parts, run_on_data, run_on_parts
from ..concatenation import CONCATENATION
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact


def _refuse(match: Match) -> str | None:
    reason = reason_against_parts(match)
    if reason is not None:
        return reason
    anchor = match.anchor
    if not reads_once(match):
        return "it reads the concatenation as a shape"
    if anchor.name == "SQUEEZE" and not np.size(anchor.option("squeezeDims", ())):
        return "it drops all dimensions of 1, and so might drop the channels of a part"
    return None


def _rewrite(match: Match, edit: Editor) -> None:
    anchor, output = match.anchor, match.anchor.outputs[0]
    if anchor.name != "RESHAPE":
        run_on_data(match, edit)
        return
    parts = parts_of(match)
    shapes = [np.asarray((*output.shape[:-1], part.channels), np.int32) for part in parts]
    constants = [
        edit.constant(f"{output.name}/part{part.index}/shape", shape) for part, shape in zip(parts, shapes, strict=True)
    ]
    # The operand says the shape; the field that may say it too would say that of the whole.
    fields = {} if anchor.options is None else {"newShape": None}
    run_on_parts(match, edit, [[part.tensor for part in parts], constants], **fields)


SPLIT_RESHAPE = Rule(
    "split_reshape",
    Pattern("reshape", ("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), {0: CONCATENATION}),
    _refuse,
    always_exact,
    _rewrite,
)
