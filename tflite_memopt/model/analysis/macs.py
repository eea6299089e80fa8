"""Multiply-accumulates of a model, and how often its subgraphs run."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

from ...operators.table import operator_macs
from ..ir.check import reachable
from ..ir.model import Model
from .loops import Loop, loops_of


def model_macs(model: Model, loops: Sequence[Loop] | None = None) -> int:
    """MACs of one invocation of the entry graph; called subgraphs count once each, a loop's body as often as it
    runs.

    A loop whose iterations depend on data counts as one iteration. ``loops``: those of the model, where they are known.
    """
    per_graph = (sum(map(operator_macs, graph.operators)) for graph in model.graphs)
    return sum(map(mul, runs_of(model, loops), per_graph))


def runs_of(model: Model, loops: Sequence[Loop] | None = None) -> list[int]:
    """Return how often each subgraph runs in one invocation of the entry graph, as ``model_macs`` counts it."""
    loops = loops_of(model) if loops is None else loops
    iterations = {id(loop.body): loop.iterations for loop in loops if loop.iterations is not None}
    called = reachable(model, 0)
    return [iterations.get(id(graph), 1) if at in called else 0 for at, graph in enumerate(model.graphs)]
