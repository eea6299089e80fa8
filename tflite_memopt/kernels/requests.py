"""Requests to TFLM's arena of the operators of a model, with TFLM's own kernels."""

from __future__ import annotations

from dataclasses import replace

from ..model.ir.check import misfit
from ..model.ir.model import Model, Operator
from ..operators.control import repeated_assignments
from ..operators.requests import Abi, RequestRule, Requests
from ..operators.table import REFERENCE


def requests_of(operator: Operator, abi: Abi) -> Requests:
    """Return the requests of an operator's reference kernel to the arena; a guess when it has no row."""
    rule = REFERENCE.get(operator.opcode.label)
    try:
        return _guess(operator) if rule is None else rule(operator, abi)
    except IndexError as error:
        raise misfit(operator) from error


def requests_in(model: Model, abi: Abi, rule: RequestRule = requests_of) -> dict[Operator, Requests]:
    """Return the requests of every operator of a model, in the order in which TFLM prepares them.

    Differs from the rule in one point that a single operator cannot know: an ASSIGN_VARIABLE to a variable
    that an earlier one has allocated takes no buffer.
    """
    found = {operator: rule(operator, abi) for operator in model.all_operators}
    for operator in repeated_assignments(model):
        found[operator] = replace(found[operator], prepare=())
    return found


def _guess(operator: Operator) -> Requests:
    """Return as much as the largest structures of the tables, the LSTM's aside."""
    tensors = (*operator.present_inputs(), *operator.outputs)
    return Requests(params=40, init=(256,), temporaries=tensors, known=False)
