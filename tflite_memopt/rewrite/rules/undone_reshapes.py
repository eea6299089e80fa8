"""A reshape that another one undoes: its readers read what there was before.

    x -- RESHAPE -- EXPAND_DIMS to the shape of x -- y -- op        =>        x -- op

Each of the two is a RESHAPE, SQUEEZE or EXPAND_DIMS. Exact: both keep the elements in their order. The first one stays
where others read it. Between any two convolutions of one dimension Keras has such a pair.
"""

from __future__ import annotations

from ...kernels.relations import RESHAPES
from ..copies import Copy, is_shape_computed, source_of
from ..pattern import Match, Pattern
from ..rule import Rule


def _check(match: Match) -> Copy | str | None:
    first, second = match["first"], match.anchor
    x, output = first.inputs[0], second.outputs[0]
    if x is None or x.shape != output.shape:
        return None
    if is_shape_computed(first) or is_shape_computed(second):
        return "a shape is computed"
    if match.is_returned(output):
        return f"it writes '{output.name}', which the graph returns"
    between = source_of(first.outputs[0], output)
    source = between if isinstance(between, str) else source_of(x, between)
    return source if isinstance(source, str) else Copy(source, output)


UNDONE_RESHAPES = Rule(
    "undone_reshapes", Pattern("second", RESHAPES, {0: Pattern("first", RESHAPES)}), _check, Copy.leave_out
)
