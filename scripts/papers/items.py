"""The tensors that Pisarchyk and Lee share memory among: those between two operators, and no others."""

from __future__ import annotations

from tflite_memopt.model.ir.model import Graph, Tensor
from tflite_memopt.solvers.graph.alignment import aligned
from tflite_memopt.solvers.plan.problem import Item

ALIGNMENT = 64
"""Bytes to which TensorFlow Lite rounds tensors up."""


def intermediate_items(graph: Graph) -> tuple[Item, ...]:
    """One item for each tensor that an operator makes and another reads, in the order in which they are made.

    The graph's inputs and outputs belong to the caller and are left out (section 3 of the paper: intermediate tensors).
    """
    last: dict[Tensor, int] = {}
    for step, operator in enumerate(graph.operators):
        for tensor in operator.present_inputs():
            last[tensor] = step
    found = []
    for step, operator in enumerate(graph.operators):
        for tensor in operator.outputs:
            if tensor in last and tensor not in graph.outputs and tensor.nbytes:
                found.append(Item(aligned(tensor.nbytes, ALIGNMENT), step, last[tensor] + 1, ALIGNMENT))
    return tuple(found)
