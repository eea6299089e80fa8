"""Side effects: operators that do more than compute their outputs, and so must keep their order."""

from __future__ import annotations

from itertools import pairwise

from ..ir.check import npu_operators
from ..ir.model import Graph, Operator

# Variables and hash tables live outside the graph; random operators advance a state; the effect of a custom operator is
# unknown.
_STATEFUL = frozenset(
    (
        *("ASSIGN_VARIABLE", "CALL_ONCE", "CUSTOM", "DELEGATE", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT"),
        *("HASHTABLE_SIZE", "MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "READ_VARIABLE", "VAR_HANDLE"),
    )
)
_CALLERS = frozenset({"IF", "WHILE"})
"""The subgraphs that these call may do any of that."""


def keeps_state(operator: Operator) -> bool:
    """Return True when an operator may remember something over invocations, its subgraphs aside.

    An operator that reads a variable tensor (LSTM, SVDF) also writes it.
    """
    return operator.name in _STATEFUL or any(tensor.is_variable for tensor in operator.present_inputs())


def has_side_effects(operator: Operator) -> bool:
    """Return True when the operator's place among others of its kind matters."""
    return operator.name in _CALLERS or keeps_state(operator)


def side_effect_order(graph: Graph) -> list[tuple[int, int]]:
    """Return the pairs (before, after) of operator positions: the effectful operators in a chain, as they stand.

    With an operator of an NPU all of them: its compiler knows which bytes are free while it runs, for this order alone.
    """
    keeps_all = bool(npu_operators(graph))
    positions = [i for i, operator in enumerate(graph.operators) if keeps_all or has_side_effects(operator)]
    return list(pairwise(positions))
