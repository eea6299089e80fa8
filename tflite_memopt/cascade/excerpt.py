"""A region alone, as a small model: to see what it needs as a loop without the rest."""

from __future__ import annotations

from dataclasses import replace

from ..ir.copying import unlinked_twin
from ..ir.model import Graph, Model, Tensor


def excerpt(model: Model, first: int, end: int) -> Model:
    """Steps ``first`` to ``end``, half-open, of the main graph; what they read or leave behind is in- and output.

    Tensors from outside that are read after the steps are outputs too, so that they live on as they do in the whole.
    Buffers are shared with the model, and nothing changes them.
    """
    operators = model.main.operators
    later = {tensor for operator in operators[end:] for tensor in operator.present_inputs()} | set(model.main.outputs)
    graph, twins = Graph("excerpt"), dict[Tensor, Tensor]()
    for operator in operators[first:end]:
        for tensor in (*operator.present_inputs(), *operator.outputs):
            if tensor not in twins:
                twins[tensor] = graph.add_tensor(unlinked_twin(tensor))
    for operator in operators[first:end]:
        inputs = tuple(None if tensor is None else twins[tensor] for tensor in operator.inputs)
        outputs = tuple(twins[tensor] for tensor in operator.outputs)
        graph.add_operator(replace(operator, inputs=inputs, outputs=outputs, intermediates=()))
    activations = [(tensor, twin) for tensor, twin in twins.items() if not tensor.is_constant]
    graph.inputs = tuple(twin for _, twin in activations if twin.producer is None)
    graph.outputs = tuple(twin for tensor, twin in activations if tensor in later)
    opcodes, buffers = list(model.opcodes), list(model.buffers)
    return replace(model, graphs=[graph], signatures=None, opcodes=opcodes, buffers=buffers)
