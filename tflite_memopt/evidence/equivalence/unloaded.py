"""The reason why TFLM does not run a model: the operator with its version, and the fix at conversion."""

from __future__ import annotations

import re

from ...kernels.support import advice_on, is_own, kind_by_types, kind_of_missing, types_of
from ...model.ir.check import describe, npu_of
from ...model.ir.model import Model, Operator
from ...operators.table import REFERENCE

_NODE = re.compile(r"Node (\w+) \(number (\d+)\)")
"""micro_interpreter_graph.cc: an operator's Prepare or Eval failed."""
_UNREGISTERED = re.compile(r"op code (\w+)")
"""micro_interpreter.cc: the resolver has no such operator. The wheel's has all of TFLM's, a runner's may have fewer."""
_OWN = "the firmware must provide its kernel; verify --runner verifies the result with it"


def explained(model: Model, said: str) -> str:
    """TFLM's words, with the operator that they are about and advice; the words alone where they name none."""
    found = _named(model, said)
    if found is None:
        return said
    step, operator = found
    advice = _advice(operator, said)
    where = f"{describe(0, step, operator)} of version {operator.opcode.version}, {', '.join(types_of(operator))}"
    return f"{where}, stands in the way{advice}; TFLM says: {said}"


def is_refusal(model: Model, said: str) -> bool:
    """Return whether TFLM's message names an operator that it cannot run; custom ones may be in the firmware."""
    found = _named(model, said)
    return found is not None and not is_own(found[1]) and not _is_elsewhere(found[1], said)


def _named(model: Model, said: str) -> tuple[int, Operator] | None:
    """Return the operator that TFLM's words are about, with its step. A called subgraph counts its own steps."""
    steps = enumerate(model.main.operators)
    node, unregistered = _NODE.search(said), _UNREGISTERED.search(said)
    if node is not None:
        return next((pair for pair in steps if (pair[1].name, pair[0]) == (node[1], int(node[2]))), None)
    return next((pair for pair in steps if unregistered is not None and pair[1].name == unregistered[1]), None)


def _is_elsewhere(operator: Operator, said: str) -> bool:
    """Return whether TFLM has a kernel for it that the TFLM of this run lacks."""
    return _NODE.search(said) is None and operator.opcode.label in REFERENCE


def _advice(operator: Operator, said: str) -> str:
    npu = npu_of(operator)
    if npu is not None:
        return f": it runs on {npu.name} alone"
    if _is_elsewhere(operator, said):
        return ": TFLM has a kernel for it: the runtime used here lacks it, the tflite-micro wheel has it"
    if _NODE.search(said) is None:
        return f": {_OWN if is_own(operator) else advice_on(kind_of_missing(operator), operator.opcode.label)}"
    kind = kind_by_types(operator)
    # The reason may be other than the types if these are common ones.
    return "" if kind == "types" else f": {advice_on(kind)}"
