"""Why TFLM does not run a model: which operator of which version stands in the way, and what to do at conversion."""

from __future__ import annotations

import re

from ..ir.check import describe
from ..ir.dtype import DType
from ..ir.model import Model, Operator

_NODE = re.compile(r"Node (\w+) \(number (\d+)\)")
"""micro_interpreter_graph.cc: an operator's Prepare or Eval failed."""
_UNREGISTERED = re.compile(r"op code (\w+)")
"""micro_interpreter.cc: the resolver has no such operator; the wheel's has all that TFLM has."""
_OF_SHAPES = frozenset({"FILL", "RANGE", "RANK", "REDUCE_PROD", "SHAPE", "UNIQUE", "WHERE"})
"""What the converter writes to work out shapes that the network leaves open."""
_ARGUMENTS = ("ARG_MAX", "ARG_MIN")
_FIXED_BATCH = "it works out shapes: give the network's input a batch size (keras.Input(..., batch_size=1))"


def explained(model: Model, said: str) -> str:
    """TFLM's words, with the operator that they are about and advice; the words alone where they name none."""
    node, unregistered = _NODE.search(said), _UNREGISTERED.search(said)
    if node is not None:
        found = _at(model, node[1], int(node[2]))
        advice = "" if found is None else _advice_on_types(found[1])
    elif unregistered is not None:
        found = _first(model, unregistered[1])
        advice = "" if found is None else _advice_on_missing(found[1])
    else:
        return said
    if found is None:
        return said
    step, operator = found
    kinds = ", ".join(dict.fromkeys(tensor.dtype.label for tensor in (*operator.present_inputs(), *operator.outputs)))
    where = f"{describe(0, step, operator)} of version {operator.opcode.version}, {kinds}"
    return f"{where}, stands in the way{advice}; TFLM says: {said}"


def _at(model: Model, name: str, step: int) -> tuple[int, Operator] | None:
    """The operator at a step, if it is the one that is named: a called subgraph counts its own."""
    operators = model.main.operators
    is_there = step < len(operators) and operators[step].name == name
    return (step, operators[step]) if is_there else None


def _first(model: Model, name: str) -> tuple[int, Operator] | None:
    return next((pair for pair in enumerate(model.main.operators) if pair[1].name == name), None)


def _advice_on_types(operator: Operator) -> str:
    kinds = {tensor.dtype for tensor in (*operator.present_inputs(), *operator.outputs)}
    if operator.name in _ARGUMENTS and DType.INT64 in kinds:
        return ": TFLM gives positions in 32 bits alone, ask for these (tf.argmax(..., output_type=tf.int32))"
    if DType.INT16 in kinds:
        return ": TFLM has fewer kernels for 16 bits, convert to int8 or float, or replace the layer"
    if DType.FLOAT32 in kinds and DType.INT8 in kinds:
        return ": weights alone are quantised, give the converter a representative dataset"
    return ""


def _advice_on_missing(operator: Operator) -> str:
    label = operator.opcode.label
    if operator.name in _OF_SHAPES:
        return f": {_FIXED_BATCH}"
    if label.startswith("Flex"):
        return ": it is TensorFlow's own, convert without SELECT_TF_OPS and replace the layer that is refused then"
    if operator.name == "CUSTOM":
        return ": the firmware must bring its kernel, and a --runner with that can prove the result"
    return ": TFLM has no such kernel, replace the layer that makes it"
