"""Reads reshapes, and writes one of the kind that was there: what several rules share."""

from __future__ import annotations

from ..ir.constants import integers
from ..ir.editor import Editor
from ..ir.model import Operator, Tensor
from ..kernels.relations import RESHAPES, operands


def shape_is_said(operator: Operator) -> bool:
    """Whether it is a reshape to a shape that is known."""
    given = list(operator.present_inputs())
    return operator.name in RESHAPES and all(tensor.is_constant for tensor in given[1:]) and len(given) > 0


def write_reshape(edit: Editor, like: Operator, x: Tensor, y: Tensor) -> None:
    """``x`` in the shape of ``y``, by an operator of the kind of ``like`` where that can be: no new kernel for it.

    ``like`` is a RESHAPE, or EXPAND_DIMS or SQUEEZE of the axis that is meant; a RESHAPE is written where it is not.
    """
    if _makes(like, x, y):
        edit.twin(like, (x, *like.inputs[1:]), (y,))
        return
    edit.reshape(x, y)


def _makes(like: Operator, x: Tensor, y: Tensor) -> bool:
    """Whether EXPAND_DIMS or SQUEEZE adds or takes out the axis in which the shapes differ."""
    many, few = (y, x) if like.name == "EXPAND_DIMS" else (x, y)
    chosen = like.option("squeezeDims") if like.name == "SQUEEZE" else integers(operands(like, 2)[1])
    if like.name == "RESHAPE" or chosen is None or len(chosen) != 1:
        return False
    at = int(chosen[0]) % len(many.shape)
    return many.shape[at] == 1 and (*many.shape[:at], *many.shape[at + 1 :]) == few.shape
