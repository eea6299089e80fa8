"""Rules that compute in the shape in which values are read, so that no reshape stands between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...model.ir.model import Operator, Tensor
from ...model.ir.tensors import has_several_scales, integers
from ...operators.boxes import RESHAPES, axis_of, operands
from ...operators.editor import Editor
from ...operators.reduce import REDUCTIONS
from ...operators.table import BY_CHANNEL
from .engine import Answer, Match, Pattern, Proposal, Rule, is_shape_computed, source_of
from .shapes import shape_is_said

_BY_LAST = ("SOFTMAX", "LOG_SOFTMAX")
_MOST = 4
"""Dimensions of operators that broadcast, or of a SOFTMAX (LiteRT)."""


@dataclass
class _Group:
    """Tensors of one shape that operators on single elements make of each other, to be computed in another shape.

    ``made``: what makes the first of them, reductions and reshapes; ``inner``: the operators; ``left_out``: reshapes
    to the other shape.
    """

    shape: tuple[int, ...]
    wanted: tuple[int, ...]
    tensors: dict[Tensor, None] = field(default_factory=dict)
    made: dict[Operator, None] = field(default_factory=dict)
    inner: dict[Operator, None] = field(default_factory=dict)
    left_out: dict[Operator, None] = field(default_factory=dict)


def _one_shape(match: Match) -> Answer:
    source, output = match.anchor.inputs[0], match.anchor.outputs[0]
    if source is None or is_shape_computed(match.anchor) or source.elements != output.elements:
        return None
    if not (source.shape and output.shape) or source.shape == output.shape or match.is_returned(output):
        return None
    group = _Group(source.shape, output.shape)
    waiting = [source]
    while waiting:
        tensor = waiting.pop()
        if tensor in group.tensors:
            continue
        group.tensors[tensor] = None
        found = _around(group, tensor, match)
        if isinstance(found, str):
            return found if group.inner else None
        waiting += found
    if max(len(group.shape), len(group.wanted)) > _MOST and group.inner:
        return "it has more dimensions than kernels take"
    return Proposal(lambda edit: _write(edit, group))


def _around(group: _Group, tensor: Tensor, match: Match) -> list[Tensor] | str:
    """Add what makes and what reads a tensor; return the tensors of the group beside it, or what is against it."""
    producer, found = tensor.producer, list[Tensor]()
    if producer is None or match.is_returned(tensor) or tensor.is_variable or has_several_scales(tensor.quantization):
        return f"'{tensor.name}' is an input or an output, or has several scales"
    if _is_inner(group, producer):
        group.inner[producer] = None
        found += _computed(producer)
    elif _can_make(group, producer):
        group.made[producer] = None
    else:
        return f"'{tensor.name}' is made in its shape"
    for use in tensor.uses:
        reader = use.operator
        if _is_inner(group, reader):
            found.append(reader.outputs[0])
        elif (
            shape_is_said(reader)
            and reader.outputs[0].shape == group.wanted
            and not match.is_returned(reader.outputs[0])
        ):
            if isinstance(source_of(tensor, reader.outputs[0]), str):
                return f"'{reader.outputs[0].name}' is quantized otherwise"
            group.left_out[reader] = None
        else:
            return f"'{tensor.name}' is read in its shape"
    return found


def _computed(operator: Operator) -> Iterator[Tensor]:
    return (tensor for tensor in operator.present_inputs() if not tensor.is_constant)


def _is_inner(group: _Group, operator: Operator) -> bool:
    """Tell whether an operator makes elements of the same place, or of the same last dimension."""
    if len(operator.outputs) != 1 or operator.outputs[0].shape != group.shape:
        return False
    if operator.name in _BY_LAST:
        if group.shape[-1] != group.wanted[-1]:
            return False
    elif operator.name not in BY_CHANNEL:
        return False
    least = min(len(group.shape), len(group.wanted))
    constants = [tensor for tensor in operator.present_inputs() if tensor.is_constant]
    if any(tensor.elements != 1 or len(tensor.shape) > least for tensor in constants):
        return False
    return all(tensor.shape == group.shape for tensor in _computed(operator))


def _can_make(group: _Group, operator: Operator) -> bool:
    """Tell whether an operator can make the other shape: a reshape of that, or a reduction that keeps dimensions."""
    source, chosen = operands(operator, 2)
    if source is None:
        return False
    if shape_is_said(operator):
        return source.shape == group.wanted and not isinstance(source_of(source, operator.outputs[0]), str)
    given = integers(chosen)
    if operator.name not in REDUCTIONS or given is None or operator.option("keepDims", False):
        return False
    rank = len(source.shape)
    taken = {axis_of(int(axis), rank) for axis in given.ravel()}
    if rank == _MOST and taken == {1, 2}:
        return False  # for which kernels have a sum of their own
    return tuple(1 if axis in taken else size for axis, size in enumerate(source.shape)) == group.wanted


def _write(edit: Editor, group: _Group) -> None:
    new: dict[Tensor, Tensor] = {}
    old = [operator for operator in edit.graph.operators if operator in group.made or operator in group.inner]
    for operator in old:
        output = operator.outputs[0]
        edit.position = edit.graph.operators.index(operator) + 1
        edit.remove(operator)
        if shape_is_said(operator):
            new[output] = operator.required(0)
            continue
        new[output] = edit.activation(f"{output.name}/as_read", group.wanted, output)
        inputs = [None if tensor is None else new.get(tensor, tensor) for tensor in operator.inputs]
        edit.twin(operator, inputs, (new[output],), **({"keepDims": True} if operator in group.made else {}))
    for reshape in group.left_out:
        edit.graph.replace_uses(reshape.outputs[0], new[reshape.required(0)])
        if reshape.outputs[0].producer is reshape:
            edit.remove(reshape)


ONE_SHAPE = Rule("one_shape", Pattern("reshape", RESHAPES), _one_shape)
r"""Compute in the shape in which values are read, so that no reshape stands between.

    x -- MEAN -- m (24) -- RESHAPE (1, 24, 1) -- op            x -- MEAN, keeps -- m (1, 24, 1) -- op
                   \-- RSQRT -- RESHAPE (1, 24, 1) -- op   =>                        \-- RSQRT -- op

    x (2, 24, 24) -- RESHAPE (1, 2, 24, 24) -- SOFTMAX -- RESHAPE (2, 24, 24) -- op   =>   x -- SOFTMAX -- op

All tensors between are of one shape, and made of each other by operators on single elements, or by SOFTMAX where the
last dimension stays; what makes the first of them is a reduction, which then keeps its dimensions, or a reshape of the
wanted shape. A layer norm of PyTorch loses three reshapes, of which TFLM keeps 80 bytes each in the tail on 32 bits,
and 64 while it plans.

Refused where one of these tensors is made or read in its own shape by anything else. A mean of rows and columns stays,
since kernels have a sum of their own for one that keeps them.

Exact: each element is computed of the same elements in the same order.
"""
