"""Tensors whose place TFLM takes from the file's offline plan."""

from __future__ import annotations

from ..ir.model import Model, Tensor


def unplannable_tensors(model: Model) -> frozenset[Tensor]:
    """Tensors of the main graph that TFLM must place itself.

    TFLM looks up whether a subgraph's variable is planned at the variable's index in the *first* subgraph
    (micro_allocator.cc, ``AllocateVariables``), and would leave it without memory if that entry were planned.
    """
    shadowed = {index for graph in model.graphs[1:] for index, tensor in enumerate(graph.tensors) if tensor.is_variable}
    return frozenset(tensor for index, tensor in enumerate(model.main.tensors) if index in shadowed)
