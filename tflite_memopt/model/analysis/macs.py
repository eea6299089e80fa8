"""Multiply-accumulates of an operator, from its shapes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

from ..ir.check import misfit, reachable
from ..ir.model import Model, Operator, Tensor
from .loops import Loop, loops_of


def operator_macs(operator: Operator) -> int:
    """Return the MACs of one invocation; 0 for operators whose work is not multiply-accumulate.

    Raises ModelFormatError when the operator lacks an input or a dimension that its kind has.
    """
    rule = _RULES.get(operator.name)
    try:
        return rule(operator) if rule else 0
    except IndexError as error:
        raise misfit(operator) from error


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


def _weights(operator: Operator, slot: int = 1) -> Tensor:
    tensor = operator.inputs[slot]
    if tensor is None:
        raise misfit(operator)
    return tensor


def _conv(operator: Operator) -> int:
    # Each output element is a dot product over kernel height x width x input channels (of its group).
    filters = _weights(operator)
    return operator.outputs[0].elements * filters.elements // max(filters.shape[0], 1)


def _depthwise(operator: Operator) -> int:
    filters = _weights(operator)
    return operator.outputs[0].elements * filters.shape[1] * filters.shape[2]


def _transpose_conv(operator: Operator) -> int:
    # Inputs are (output shape, filters [out, h, w, in], x): each input pixel is multiplied by the whole filter.
    filters, x = _weights(operator), _weights(operator, 2)
    return x.elements * filters.elements // max(filters.shape[3], 1)


def _dense(operator: Operator) -> int:
    depth = _weights(operator).shape[-1]
    return operator.outputs[0].elements * depth


def _batch_matmul(operator: Operator) -> int:
    x = _weights(operator, 0)
    depth = x.shape[-2] if operator.option("adjX") else x.shape[-1]
    return operator.outputs[0].elements * depth


def _lstm(operator: Operator) -> int:
    # Slots 1 to 8 are the input and recurrent weights of the four gates; each is used at every time step.
    x = _weights(operator, 0)
    steps = x.elements // max(x.shape[-1], 1)
    return steps * sum(t.elements for t in operator.inputs[1:9] if t is not None)


def _svdf(operator: Operator) -> int:
    x = _weights(operator, 0)
    return (x.shape[0] if x.shape else 1) * (_weights(operator, 1).elements + _weights(operator, 2).elements)


_RULES = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "TRANSPOSE_CONV": _transpose_conv,
    "FULLY_CONNECTED": _dense,
    "BATCH_MATMUL": _batch_matmul,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "SVDF": _svdf,
}
