"""A subgraph as a model of its own."""

from __future__ import annotations

from ..io import offline_plan
from ..io.reader import read_model
from ..io.writer import write_model
from ..ir.control_flow import called_subgraphs, renumber_subgraphs
from ..ir.model import Model


def isolated(data: bytes, index: int) -> tuple[bytes, tuple[int, ...]]:
    """A model with subgraph ``index`` as its entry, planned as it is in ``data``; and by position, the old position."""
    model = read_model(data)
    planned = offline_plan.decode(model)
    order = (index, *sorted(reachable(model, index) - {index}))
    positions = {old: new for new, old in enumerate(order)}
    model.graphs = [model.graphs[at] for at in order]
    model.signatures = None
    kept = {id(tensor) for graph in model.graphs for tensor in graph.tensors}
    for operator in (operator for graph in model.graphs for operator in graph.operators):
        renumber_subgraphs(operator, positions)
    if planned:
        offline_plan.attach(model, {tensor: offset for tensor, offset in planned.items() if id(tensor) in kept})
    return write_model(model), order


def reachable(model: Model, index: int) -> set[int]:
    """Positions of the subgraph and of all that it calls."""
    found, left = {index}, [index]
    while left:
        called = {at for operator in model.graphs[left.pop()].operators for at in called_subgraphs(operator)}
        left += called - found
        found |= called
    return found
