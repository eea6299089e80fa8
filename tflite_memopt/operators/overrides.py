"""Operands and options that an operator gets where it is written for other shapes.

*Phases*: the steps t of a sequence with the same ``t mod P`` are a sequence of their own. Where P divides dilations and
paddings, no two phases meet (``cascade/loop.py``).

*Along H*: sequences (1, L, C), (1, 1, L, C) or (L, C) become (1, L, 1, C), the same bytes in the same order. Here are
the operators that compute the same then, and the changes of their rows and columns; the shapes of their tensors are
still as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..model.ir.editor import VALID, Array, Editor, stem
from ..model.ir.model import Operator, Tensor
from ..model.ir.tensors import integers


@dataclass(frozen=True)
class Overrides:
    """``operands``: by slot; ``fields``: of the options."""

    operands: Mapping[int, Tensor] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def apply_to(self, inputs: Iterable[Tensor | None]) -> list[Tensor | None]:
        """These inputs, with the operands in their slots."""
        return [self.operands.get(slot, tensor) for slot, tensor in enumerate(inputs)]


@dataclass(frozen=True)
class ShapeOperand:
    """The input in ``slot``, which says dimensions ``first`` to ``end`` of the output's shape, half-open.

    ``option``: the field that says them too.
    """

    slot: int
    first: int = 0
    end: int = 4
    option: str | None = None

    def of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return its value for an output of this shape."""
        return shape[self.first : self.end]

    def overrides_for(self, edit: Editor, output: Tensor) -> Overrides:
        """For an output of another shape."""
        said = np.asarray(self.of(output.shape), np.int32)
        return Overrides(
            {self.slot: edit.constant(f"{output.name}/shape", said)}, {} if self.option is None else {self.option: said}
        )


@dataclass(frozen=True)
class PaddingsOperand:
    """The input in ``slot``, a constant with the paddings before and behind the four dimensions of an image."""

    slot: int = 1

    def of(self, operator: Operator, above: int, below: int) -> Array:
        """Return its value for these rows of padding above and below."""
        amounts = integers(operator.inputs[self.slot])
        assert amounts is not None
        amounts[2:4] = above, below
        return amounts.reshape(4, 2).astype(np.int32)

    def overrides_for(self, edit: Editor, operator: Operator, output: Tensor, rows: tuple[int, int]) -> Overrides:
        """Return the values for an output with these rows of padding above and below."""
        return Overrides({self.slot: edit.constant(f"{output.name}/paddings", self.of(operator, *rows))})


_RANK = 4


def pads_whole_phases(operator: Operator, phases: int) -> bool:
    """Tell whether a PAD puts as many steps around every phase."""
    amounts = integers(operator.inputs[1])
    if amounts is None or amounts.size != 2 * _RANK:
        return False
    return not (amounts[:2].any() or amounts[4:].any() or (amounts % phases).any())


def paddings_of_phase(edit: Editor, operator: Operator, phases: int) -> Overrides:
    """Return a share of the steps for each phase."""
    amounts = integers(operator.inputs[1])
    assert amounts is not None
    paddings = (amounts // phases).astype(np.int32).reshape(-1, 2)
    return Overrides({1: edit.constant(f"{stem(operator.outputs[0])}/paddings", paddings)})


def is_dilated_by_phases(operator: Operator, phases: int) -> bool:
    """Tell whether all taps of a convolution are in one phase."""
    filters = operator.inputs[1]
    if filters is None or len(filters.shape) != _RANK or filters.shape[2] != 1:
        return False
    if any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[1:]):
        return False
    if operator.option("strideH", 1) != 1 or operator.option("strideW", 1) != 1:
        return False
    is_dilated = operator.option("padding", 0) == VALID and operator.option("dilationHFactor", 1) % phases == 0
    return filters.shape[1] == 1 or bool(is_dilated)


def dilation_in_phase(_: Editor, operator: Operator, phases: int) -> Overrides:
    """Return the steps that are ``phases`` apart are next to each other."""
    return Overrides(fields={"dilationHFactor": max(1, int(operator.option("dilationHFactor", 1)) // phases)})


def is_same_in_every_phase(operator: Operator, _: int) -> bool:
    """Tell whether an element depends on those at the same place, and on constants of channels."""
    return all(_is_alike(each, operator.outputs[0]) for each in operator.present_inputs())


def _is_alike(tensor: Tensor, output: Tensor) -> bool:
    """Tell whether it has a value for each of the output, or is a constant of channels."""
    return tensor.shape == output.shape or (tensor.is_constant and tensor.elements in (1, *tensor.shape[-1:]))


def nothing_for_phase(_: Editor, __: Operator, ___: int) -> Overrides:
    """Return no overrides: every element is treated alike."""
    return Overrides()


_SWAPPED = (("strideH", "strideW"), ("dilationHFactor", "dilationWFactor"), ("filterHeight", "filterWidth"))
Sequences = Collection[Tensor]


def laid_along_h(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a sequence, or of a filter of 1 x k, laid along H."""
    return (1, *shape[-2:-1], 1, *shape[-1:]) if len(shape) < 4 else (shape[0], shape[2], shape[1], shape[3])


def nothing_along_h(_: Editor, __: Operator) -> Overrides:
    """Return no overrides: the operator knows no rows and columns."""
    return Overrides()


def is_image_of_one_row(operator: Operator, sequences: Sequences) -> bool:
    """Tell whether the input is a sequence in four dimensions, and so is the output."""
    source = operator.inputs[0]
    return source in sequences and source is not None and len(source.shape) == len(operator.outputs[0].shape) == 4


def has_filters_of_one_row(operator: Operator, sequences: Sequences) -> bool:
    """Return a convolution by filters of 1 x k."""
    filters = operator.inputs[1]
    is_of_one_row = filters is not None and filters.is_constant and len(filters.shape) == 4 and filters.shape[1] == 1
    return is_of_one_row and is_image_of_one_row(operator, sequences)


def transposes_one_row(operator: Operator, sequences: Sequences) -> bool:
    """A transposed convolution of a sequence by filters of 1 x k, whose shape is said by a constant."""
    shape, filters, source = operator.inputs[:3]
    is_of_one_row = filters is not None and filters.is_constant and len(filters.shape) == 4 and filters.shape[1] == 1
    is_said = integers(shape) is not None and len(operator.outputs[0].shape) == 4
    return is_of_one_row and is_said and source in sequences and source is not None and len(source.shape) == 4


def shape_along_h(edit: Editor, operator: Operator) -> Overrides:
    """Rows and columns are swapped in the options, and in the shape that is said."""
    output = operator.outputs[0]
    shape = edit.constant(f"{output.name}/shape", np.asarray(laid_along_h(output.shape), np.int32))
    return Overrides({0: shape}, swapped_options(operator))


def pools_one_row(operator: Operator, sequences: Sequences) -> bool:
    """Return a pool over 1 x k."""
    return operator.option("filterHeight", 1) == 1 and is_image_of_one_row(operator, sequences)


def swapped_options(operator: Operator) -> dict[str, Any]:
    """Swap the options of rows and columns."""
    fields = {} if operator.options is None else operator.options.fields
    return {a: fields[b] for pair in _SWAPPED for a, b in (pair, pair[::-1]) if b in fields}


def swapped_sides(_: Editor, operator: Operator) -> Overrides:
    """As ``swapped_options``."""
    return Overrides(fields=swapped_options(operator))


def has_sequences_alone(operator: Operator, sequences: Sequences) -> bool:
    """Other operands are the same for every element of the sequence."""
    return all(tensor in sequences or set(tensor.shape[:-1]) <= {1} for tensor in operator.present_inputs())


def pads_along(operator: Operator, sequences: Sequences) -> bool:
    """Return a PAD of the sequence and of channels, by constants."""
    amounts = integers(operator.inputs[1])
    rank = len(operator.outputs[0].shape)
    if operator.inputs[0] not in sequences or amounts is None or amounts.size != 2 * rank:
        return False
    others = [tensor for tensor in operator.inputs[2:] if tensor is not None]
    return not amounts[: 2 * (rank - 2)].any() and all(tensor.is_constant for tensor in others)


def paddings_along_h(edit: Editor, operator: Operator) -> Overrides:
    """Return the sequence is padded along H."""
    amounts = integers(operator.inputs[1])
    assert amounts is not None
    along, channels = amounts.reshape(-1, 2)[-2:]
    paddings = np.asarray([(0, 0), along, (0, 0), channels], np.int32)
    return Overrides({1: edit.constant(f"{operator.outputs[0].name}/paddings", paddings)})


def joins_channels(operator: Operator, sequences: Sequences) -> bool:
    """Return a CONCATENATION of channels."""
    rank = len(operator.outputs[0].shape)
    is_of_channels = int(operator.option("axis", 0)) % rank == rank - 1
    return is_of_channels and all(tensor in sequences for tensor in operator.inputs)


def channels_of_image(_: Editor, __: Operator) -> Overrides:
    """Channels are the last of four dimensions."""
    return Overrides(fields={"axis": 3})


def is_dense_by_element(operator: Operator, sequences: Sequences) -> bool:
    """FULLY_CONNECTED of every element by itself."""
    source, weights = operator.inputs[0], operator.inputs[1:]
    if source is None or source not in sequences or source.shape[-2] != operator.outputs[0].shape[-2]:
        return False
    return all(tensor is None or tensor.is_constant for tensor in weights)


def all_dimensions_kept(_: Editor, __: Operator) -> Overrides:
    """Return the output has the dimensions of the input."""
    return Overrides(fields={"keepNumDims": True})


def reduces_channels(operator: Operator, sequences: Sequences) -> bool:
    """Return a reduction of the channels alone, which stay as a dimension of 1."""
    source, axes = operator.inputs[0], integers(operator.inputs[1])
    if source is None or source not in sequences or axes is None or not operator.option("keepDims", False):
        return False
    rank = len(source.shape)
    return {int(axis) % rank for axis in axes} == {rank - 1}


def axis_of_channels(edit: Editor, operator: Operator) -> Overrides:
    """Channels are the last of four dimensions."""
    return Overrides({1: edit.constant(f"{operator.outputs[0].name}/axis", np.asarray([3], np.int32))})


def multiplies_by_one_matrix(operator: Operator, sequences: Sequences) -> bool:
    """Return a sequence by one matrix, which stays in place: a broadcast operand is the same for all rows."""
    source, matrix = operator.inputs[:2]
    if source is None or matrix is None or source not in sequences or len(source.shape) != 4:
        return False
    is_plain = not operator.option("adjX", False) and len(operator.outputs[0].shape) == 4
    return is_plain and matrix.dtype is source.dtype and set(matrix.shape[:-2]) <= {1}


def cuts_channels(operator: Operator, sequences: Sequences) -> bool:
    """Some channels of the whole sequence."""
    source, output = operator.inputs[0], operator.outputs[0]
    is_said = all(tensor is not None and integers(tensor) is not None for tensor in operator.inputs[1:3])
    return is_said and source in sequences and source is not None and source.shape[:-1] == output.shape[:-1]


def channels_cut(edit: Editor, operator: Operator) -> Overrides:
    """Return the same channels of four dimensions."""
    begin, output = integers(operator.inputs[1]), operator.outputs[0]
    assert begin is not None
    first, size = np.asarray((0, 0, 0, begin[-1]), np.int32), np.asarray(laid_along_h(output.shape), np.int32)
    return Overrides({1: edit.constant(f"{output.name}/begin", first), 2: edit.constant(f"{output.name}/size", size)})
