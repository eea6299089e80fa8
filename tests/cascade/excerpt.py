"""A region alone, as a small model: to see what it needs in stripes without the rest."""

from __future__ import annotations

from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import Model


def excerpt(model: Model, first: int, end: int) -> Model:
    """Steps ``first`` to ``end``, half-open, of the main graph; what they read or leave behind is in- and output.

    Tensors from outside that are read after the steps are outputs too, so that they live on as they do in the whole.
    """
    copied = copy_model(model)
    graph = copied.main
    operators = list(graph.operators)
    inside = set(operators[first:end])
    later = {tensor for operator in operators[end:] for tensor in operator.present_inputs()} | set(graph.outputs)
    touched = dict.fromkeys(tensor for op in operators[first:end] for tensor in (*op.present_inputs(), *op.outputs))
    for operator in operators:
        if operator not in inside:
            graph.remove_operator(operator)
    graph.inputs = tuple(t for t in touched if t.producer is None and not t.is_constant)
    graph.outputs = tuple(tensor for tensor in touched if tensor in later and not tensor.is_constant)
    copied.signatures = None
    graph.tensors = list(touched)
    copied.graphs = [graph]
    return copied
