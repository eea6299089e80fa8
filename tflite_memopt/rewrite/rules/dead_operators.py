r"""Drop operators that nobody needs.

    x --> op --> y           x --> op --> y
     \--> op --> z      =>
    (z: no reader, not returned)

Exact: nothing sees the values. An operator with a side effect is needed: one that writes a variable, calls a subgraph
or is custom. What only the dropped operator has read is dead as well, and goes with it.
"""

from __future__ import annotations

from ...ir.editor import Editor
from ..driver import is_dead
from ..pattern import Match, Pattern
from ..rule import Rule


def _check(match: Match) -> Match | None:
    return match if is_dead(match.graph, match.anchor) else None


def _rewrite(_: Match, __: Editor) -> None:
    """The operator is out of the graph already, and none of its outputs is read."""


DEAD_OPERATORS = Rule("dead_operators", Pattern("dead", ()), _check, _rewrite)
