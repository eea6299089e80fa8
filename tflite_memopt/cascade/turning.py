"""Operators over sequences that can take them standing, and what they are told then: one table.

A sequence (1, L, C), (1, 1, L, C) or (L, C) stands as (1, L, 1, C): the same bytes in the same order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..ir.editor import Editor
from ..ir.model import Operator, Tensor, Use
from ..kernels.relations.shapes import RESHAPES
from ..operators.along_h import Sequences
from ..operators.table import kind_of


def is_sequence(tensor: Tensor) -> bool:
    """Whether it is (1, 1, L, C), (1, L, C) or (L, C) with L > 1, and computed."""
    ones, length = tensor.shape[:-2], tensor.shape[-2:-1]
    is_long = len(tensor.shape) in (2, 3, 4) and all(size == 1 for size in ones) and length > (1,)
    return is_long and tensor.shape[-1] > 0 and not (tensor.is_constant or tensor.is_variable)


def can_turn(operator: Operator, sequences: Sequences) -> bool:
    """Whether the operator computes the same from its sequences standing. Reshapes only pass them on."""
    if len(operator.outputs) != 1 or operator.outputs[0] not in sequences:
        return False
    found = kind_of(operator).along_h
    if found is None or not found.can(operator, sequences):
        return False
    filters = None if found.filters is None else operator.inputs[found.filters]
    return filters is None or all(_is_of_filters(use, sequences) for use in filters.uses)


def _is_of_filters(use: Use, sequences: Sequences) -> bool:
    """Whether a reader of filters, which are turned too, has them as filters, and turns."""
    found = kind_of(use.operator).along_h
    if found is None or found.filters != use.slot:
        return False
    return use.operator.inputs[0] in sequences and use.operator.outputs[0] in sequences


def stays(operator: Operator, slot: int) -> bool:
    """Whether a turning operator reads this input as it lies: the matrix of a product."""
    found = kind_of(operator).along_h
    return found is not None and found.as_it_lies == slot


def turn_operands(edit: Editor, operator: Operator) -> None:
    """What an operator is told about rows and columns, said of standing sequences; their shapes are as they were."""
    found = kind_of(operator).along_h
    assert found is not None
    told = found.told(edit, operator)
    for slot, tensor in told.operands.items():
        edit.graph.set_input(operator, slot, tensor)
    if operator.options is not None:
        operator.options = replace(operator.options, fields={**operator.options.fields, **told.fields})


def shape_is_said(operator: Operator) -> bool:
    """Whether it is a reshape to a shape that is known."""
    given = list(operator.present_inputs())
    return operator.name in RESHAPES and all(tensor.is_constant for tensor in given[1:]) and len(given) > 0


def write_reshape(edit: Editor, position: int, source: Tensor, output: Tensor, like: Operator | None = None) -> None:
    """``source`` in the shape of ``output``, by an operator of the kind of ``like`` where that can be."""
    edit.position = position
    is_added = (*source.shape[:2], 1, *source.shape[2:]) == output.shape
    is_dropped = (*output.shape[:2], 1, *output.shape[2:]) == source.shape
    if like is not None and like.name == "EXPAND_DIMS" and is_added:
        axis = edit.constant(f"{output.name}/axis", np.asarray(2, np.int32))
        edit.twin(like, (source, axis), (output,))
    elif like is not None and like.name == "SQUEEZE" and is_dropped:
        edit.twin(like, (source,), (output,), squeezeDims=np.asarray([2], np.int32))
    else:
        edit.reshape(source, output)
