"""A RESHAPE of a reshaped tensor: of the tensor itself.

    x -- RESHAPE, SQUEEZE or EXPAND_DIMS -- RESHAPE -- y        =>        x -- RESHAPE -- y

Exact: all of them keep the elements in their order. The second one stays what it is, so that the firmware needs no
other kernel than before.
"""

from __future__ import annotations

from ...kernels.relations import RESHAPES
from ..copies import CopyReader, is_shape_computed, source_for_one_reader
from ..pattern import Match, Pattern
from ..rule import Rule


def _check(match: Match) -> CopyReader | str:
    first, second = match["first"], match.anchor
    if is_shape_computed(first) or is_shape_computed(second):
        return "a shape is computed"
    source = source_for_one_reader(match, first)
    return source if isinstance(source, str) else CopyReader(second, source)


CONSECUTIVE_RESHAPES = Rule(
    "consecutive_reshapes",
    Pattern("second", ("RESHAPE",), {0: Pattern("first", RESHAPES)}),
    _check,
    CopyReader.read_source,
)
