"""Operators over one phase of a sequence: the steps t with the same ``t mod P`` are a sequence of their own.

Where P divides dilations and paddings, no two phases meet (``cascade/phases.py``).
"""

from __future__ import annotations

import numpy as np

from ..ir.constants import integers
from ..ir.editor import Editor
from ..ir.making import VALID
from ..ir.model import Operator, Tensor
from ..ir.names import stem
from .told import Told

_RANK = 4


def pads_whole_phases(operator: Operator, phases: int) -> bool:
    """Whether a PAD puts as many steps around every phase."""
    amounts = integers(operator.inputs[1])
    if amounts is None or amounts.size != 2 * _RANK:
        return False
    return not (amounts[:2].any() or amounts[4:].any() or (amounts % phases).any())


def paddings_of_phase(edit: Editor, operator: Operator, phases: int) -> Told:
    """A share of the steps for each phase."""
    amounts = integers(operator.inputs[1])
    assert amounts is not None
    paddings = (amounts // phases).astype(np.int32).reshape(-1, 2)
    return Told({1: edit.constant(f"{stem(operator.outputs[0])}/paddings", paddings)})


def is_dilated_by_phases(operator: Operator, phases: int) -> bool:
    """Whether all taps of a convolution are in one phase."""
    filters = operator.inputs[1]
    if filters is None or len(filters.shape) != _RANK or filters.shape[2] != 1:
        return False
    if any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[1:]):
        return False
    if operator.option("strideH", 1) != 1 or operator.option("strideW", 1) != 1:
        return False
    is_dilated = operator.option("padding", 0) == VALID and operator.option("dilationHFactor", 1) % phases == 0
    return filters.shape[1] == 1 or bool(is_dilated)


def dilation_in_phase(_: Editor, operator: Operator, phases: int) -> Told:
    """Steps that are ``phases`` apart are next to each other."""
    return Told(fields={"dilationHFactor": max(1, int(operator.option("dilationHFactor", 1)) // phases)})


def is_same_in_every_phase(operator: Operator, _: int) -> bool:
    """Whether an element depends on those at the same place, and on constants of channels."""
    return all(_is_alike(each, operator.outputs[0]) for each in operator.present_inputs())


def _is_alike(tensor: Tensor, output: Tensor) -> bool:
    """Whether it has a value for each of the output, or is a constant of channels."""
    return tensor.shape == output.shape or (tensor.is_constant and tensor.elements in (1, *tensor.shape[-1:]))


def nothing_for_phase(_: Editor, __: Operator, ___: int) -> Told:
    """What is done to every element alike needs no word."""
    return Told()
