"""What an approximation cannot have changed."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.model import Graph
from .correspondence import Link


def untouched_links(links: Sequence[Link], graph: Graph, approximated: Sequence[str]) -> tuple[Link, ...]:
    """The links whose tensor of the original depends on none of the ``approximated`` ones: these stay the same bits.

    A name that the original does not have could stand for anything: then no link is left but those of graph inputs.
    """
    named = {tensor.name: tensor for tensor in graph.tensors}
    if any(name not in named for name in approximated):
        inputs = {id(tensor) for tensor in graph.inputs}
        return tuple(link for link in links if id(graph.tensors[link.before]) in inputs)
    reached = {id(named[name]) for name in approximated}
    for operator in graph.operators:
        if any(id(tensor) in reached for tensor in operator.present_inputs()):
            reached |= {id(tensor) for tensor in operator.outputs}
    return tuple(link for link in links if id(graph.tensors[link.before]) not in reached)
