"""Tensors of floats between DEQUANTIZE and QUANTIZE, which quantizers leave around operators that they do not know."""

from __future__ import annotations

from ..ir.model import DType, Graph, Operator, Tensor


def float_islands(graph: Graph) -> dict[Tensor, Operator]:
    """Return the floats that are made of stored integers and end in stored integers, with the operators that make them.

    Those that the graph returns, or that anything reads that reads other floats as well, are none.
    """
    found: dict[Tensor, Operator] = {}
    for operator in graph.operators:
        of_integers = operator.name == "DEQUANTIZE" and not operator.required(0).is_constant
        floats = [each for each in operator.present_inputs() if each.dtype is DType.FLOAT32 and not each.is_constant]
        if of_integers or (floats and all(each in found for each in floats)):
            found |= {each: operator for each in operator.outputs if each.dtype is DType.FLOAT32}
    for tensor in reversed(list(found)):
        readers = [use.operator for use in tensor.uses]
        if tensor in graph.outputs or not all(_stays(each, found) for each in readers):
            del found[tensor]
    return found


def _stays(operator: Operator, found: dict[Tensor, Operator]) -> bool:
    """Tell whether an operator makes floats of an island, or no floats."""
    return all(each.dtype is not DType.FLOAT32 or each in found for each in operator.outputs)
