"""Which subgraphs an operator calls, in the order in which TFLM lays them out."""

from __future__ import annotations

from collections.abc import Mapping

from .model import Model, Operator, OperatorOptions

# Source: TFLM micro_allocation_info.cc, MarkSubgraphLifetimesIfNecessary.
_SUBGRAPH_FIELDS = {
    "IF": ("thenSubgraphIndex", "elseSubgraphIndex"),
    "WHILE": ("condSubgraphIndex", "bodySubgraphIndex"),
    "CALL_ONCE": ("initSubgraphIndex",),
}
# Operators that call subgraphs and that TFLM does not have; their memory cannot be planned.
UNSUPPORTED_CALLERS = frozenset(
    {
        "CALL",
        "STABLEHLO_COMPOSITE",
        "STABLEHLO_WHILE",
        "STABLEHLO_CASE",
        "STABLEHLO_REDUCE",
        "STABLEHLO_REDUCE_WINDOW",
        "STABLEHLO_SCATTER",
        "STABLEHLO_SORT",
        "STABLEHLO_CUSTOM_CALL",
    }
)


def called_subgraphs(operator: Operator) -> tuple[int, ...]:
    """Positions in ``Model.graphs`` of the subgraphs that ``operator`` calls; empty for most operators."""
    names = _SUBGRAPH_FIELDS.get(operator.name, ())
    return tuple(int(operator.option(name, -1)) for name in names)


def renumber_subgraphs(operator: Operator, positions: Mapping[int, int]) -> None:
    """Let ``operator`` call the subgraphs at new positions: old position -> new one."""
    names = _SUBGRAPH_FIELDS.get(operator.name, ())
    if names and operator.options is not None:
        moved = {name: positions[int(operator.option(name, -1))] for name in names}
        operator.options = OperatorOptions(operator.options.kind, {**operator.options.fields, **moved})


def reachable(model: Model, index: int) -> set[int]:
    """Positions of the subgraph and of all that it calls."""
    found, left = {index}, [index]
    while left:
        called = {at for operator in model.graphs[left.pop()].operators for at in called_subgraphs(operator)}
        left += called - found
        found |= called
    return found
