"""Rules about transposes, which converters write around what they let compute with channels last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from ...model.ir.editor import Array
from ...model.ir.model import DType, Model, Operator, Tensor
from ...model.ir.tensors import integers, values
from ...operators.boxes import RESHAPES, axis_of, operands, slice_box
from ...operators.editor import Editor
from ...operators.reduce import REDUCTIONS
from ...operators.table import BY_CHANNEL
from .engine import Answer, Match, Pattern, Proposal, Rule, is_shape_computed, leave_out, source_of
from .shapes import MOST_DIMENSIONS, axes_leaving

_MOVERS = ("TRANSPOSE", *RESHAPES)


@dataclass(frozen=True)
class Origin:
    """The tensor whose elements another one has in another order, and the operators between, the first one first.

    ``places``: for each dimension of the other one, the dimensions of ``source`` with more than one element that it
    goes through, the outermost first.

    >>> # (1, 7, 8, 3) -- TRANSPOSE (1, 3, 7, 8) -- RESHAPE (1, 3, 56): places ((), (3,), (1, 2))
    """

    source: Tensor
    path: tuple[Operator, ...]
    places: tuple[tuple[int, ...], ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The dimensions of ``source`` with more than one element, the one that changes least often first."""
        return tuple(chain.from_iterable(self.places))

    @property
    def keeps_order(self) -> bool:
        """Whether the elements are in the order of ``source``."""
        return list(self.order) == sorted(self.order)


def origin_of(tensor: Tensor) -> Origin | None:
    """Follow transposes and reshapes back to the input of the first transpose from which the order is known."""
    path: list[Operator] = []
    at = tensor
    while at.producer is not None and _moves(at.producer):
        path.append(at.producer)
        at = next(iter(at.producer.present_inputs()))
    while path:
        first = path.pop()
        source = first.inputs[0]
        if first.name != "TRANSPOSE" or source is None:
            continue
        places = _followed(source, [first, *reversed(path)])
        if places is not None:
            return Origin(source, (first, *reversed(path)), places)
    return None


def _moves(operator: Operator) -> bool:
    x = operator.inputs[0] if operator.inputs else None
    if operator.name not in _MOVERS or x is None or is_shape_computed(operator):
        return False
    return not isinstance(source_of(x, operator.outputs[0]), str) and min(x.shape, default=1) > 0


def _followed(source: Tensor, path: Sequence[Operator]) -> tuple[tuple[int, ...], ...] | None:
    """The places of the last output, or None where a reshape cuts through a dimension."""
    places: tuple[tuple[int, ...], ...] = tuple((axis,) if size > 1 else () for axis, size in enumerate(source.shape))
    for operator in path:
        if operator.name == "TRANSPOSE":
            order = [axis_of(axis, len(places)) for axis in _integers(operator)]
            if len(order) != len(places) or sorted(axis for axis in order if axis is not None) != [*range(len(places))]:
                return None
            places = tuple(places[axis] for axis in order if axis is not None)
            continue
        regrouped = _regrouped(source.shape, [*chain.from_iterable(places)], operator.outputs[0].shape)
        if regrouped is None:
            return None
        places = regrouped
    return places


def _integers(operator: Operator) -> list[int]:
    found = integers(operator.operand(1))
    return [] if found is None else [int(each) for each in found]


def _regrouped(sizes: Sequence[int], order: list[int], shape: Sequence[int]) -> tuple[tuple[int, ...], ...] | None:
    """The dimensions of ``order`` in groups whose products are those of ``shape``."""
    places = []
    for size in shape:
        group: list[int] = []
        while prod(sizes[axis] for axis in group) < size and order:
            group.append(order.pop(0))
        if prod(sizes[axis] for axis in group) != size:
            return None
        places.append(tuple(group))
    return None if order else tuple(places)


def write_reordered(source: Tensor, output: Tensor, axes: Sequence[int], edit: Editor) -> None:
    """Write an output by a transpose, a reshape, or both: what is needed of them.

    It has the elements of the source in the order of ``axes``, all dimensions of the source.
    """
    long = [axis for axis in axes if source.shape[axis] > 1]
    if long != sorted(long):
        shape = tuple(source.shape[axis] for axis in axes)
        turned = output if shape == output.shape else edit.activation(f"{output.name}/turned", shape, output)
        order = edit.constant(f"{output.name}/order", np.asarray(axes, np.int32))
        edit.operator("TRANSPOSE", (source, order), (turned,), "TransposeOptions")
        source = turned
    if source is not output:
        edit.reshape(source, output)


def _consecutive_transposes(match: Match) -> Answer:
    anchor = match.anchor
    output, found = anchor.outputs[0], origin_of(anchor.outputs[0])
    if found is None or len(found.path) < 2:
        return None
    if found.keeps_order and found.source.shape == output.shape:
        if match.is_returned(output):
            return f"it writes '{output.name}', which the graph returns"
        return leave_out(found.source, output)
    is_one_too_many = sum(operator.name == "TRANSPOSE" for operator in found.path) > 1
    if anchor.name != "TRANSPOSE" or not (found.keeps_order or is_one_too_many):
        return None
    between = [operator.outputs[0] for operator in found.path[:-1]]
    read = next((tensor for tensor in between if match.is_shared(tensor)), None)
    if read is not None and not found.keeps_order:
        return f"'{read.name}' is needed by others too"
    # Dimensions of one element come before the others, where they change nothing.
    ones = (axis for axis in range(len(found.source.shape)) if axis not in found.order)
    return Proposal(partial(write_reordered, found.source, output, (*ones, *found.order)))


CONSECUTIVE_TRANSPOSES = Rule("consecutive_transposes", Pattern("last", _MOVERS), _consecutive_transposes)
"""Join transposes with nothing but reshapes between, and drop those that undo each other.

    x (1, 1, 64, 16) -- TRANSPOSE (1, 16, 1, 64) -- RESHAPE (1, 16, 64) -- TRANSPOSE (1, 64, 16) -- op
                                                           =>        x -- RESHAPE (1, 64, 16) -- op

Exact: each of them moves elements, and no reshape cuts through a dimension, so that the order of the last output is one
of the dimensions of ``x``. A transpose that others read stays for them. Converters of networks with channels first
write such chains around every convolution.
"""


@dataclass(frozen=True)
class NewConstant:
    """A constant in the order of the source; it has the name and the quantization of ``like``."""

    like: Tensor
    array: Array


@dataclass(frozen=True)
class _Reshaped:
    """A computed operand in another shape, whose elements stay in their order."""

    tensor: Tensor
    shape: tuple[int, ...]


_Operand = Tensor | NewConstant | _Reshaped


@dataclass(frozen=True)
class _Site:
    """An operator behind transposes. ``axes``: the dimension of the source for each of its input's, if it is longer
    than one element.
    """

    operator: Operator
    origin: Origin
    axes: tuple[int | None, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.origin.source.shape

    def lowered(
        self,
        inputs: Sequence[_Operand | None],
        shape: Sequence[int] | None = None,
        order: Sequence[int] | None = None,
        **fields: Any,
    ) -> Proposal:
        """Propose the operator on these inputs, and its old output made of what it makes then.

        ``shape``: of what it makes, the source's where that has not changed; ``order``: the dimensions of that in the
        order of the old output. ``fields``: options that are others.
        """
        long = [axis for axis in self.axes if axis is not None]
        rest = (axis for axis in range(len(self.sizes)) if axis not in long)
        axes = (*rest, *long) if order is None else tuple(order)
        made_shape, output = tuple(self.sizes if shape is None else shape), self.operator.outputs[0]

        def write(edit: Editor) -> None:
            new = [_written(each, edit) for each in inputs]
            is_same = made_shape == output.shape and list(axes) == sorted(axes)
            made = output if is_same else edit.activation(f"{output.name}/source_order", made_shape, output)
            edit.twin(self.operator, new, (made,), **fields)
            if made is not output:
                write_reordered(made, output, axes, edit)

        return Proposal(write)

    def by_source(self, of_input: Sequence[Any], other: Any) -> list[Any]:
        """Values of the input's dimensions in the order of the source's; ``other`` for those of one element."""
        found = [other] * len(self.sizes)
        for axis, value in zip(self.axes, of_input, strict=True):
            if axis is not None:
                found[axis] = value
        return found


def _written(operand: _Operand | None, edit: Editor) -> Tensor | None:
    if isinstance(operand, NewConstant):
        return edit.constant(f"{operand.like.name}/source_order", operand.array, operand.like.quantization)
    if not isinstance(operand, _Reshaped):
        return operand
    return edit.reshaped(operand.tensor, operand.shape, f"{operand.tensor.name}/source_order")


def _lowered_transpose(match: Match) -> Answer:
    operator = match.anchor
    found = [None if tensor is None or tensor.is_constant else origin_of(tensor) for tensor in operator.inputs]
    origin = next((each for each in found if each is not None and not each.keeps_order), None)
    if origin is None or len(operator.outputs) != 1:
        return None
    if len(origin.source.shape) > MOST_DIMENSIONS:
        return "its input has more dimensions than kernels of TFLM take"
    if any(len(group) > 1 for group in origin.places):
        return "dimensions of the transposed tensor were made one"
    site = _Site(operator, origin, tuple(group[0] if group else None for group in origin.places))
    return _LOWERED[operator.name](site)


def _elementwise(site: _Site) -> Answer:
    operator, rank = site.operator, len(site.axes)
    if len(operator.outputs[0].shape) != rank:
        return "its output has other dimensions"
    inputs: list[_Operand | None] = []
    for tensor in operator.inputs:
        found = None if tensor is None else _in_source_order(site, tensor)
        if found is None or isinstance(found, str):
            return found or "an operand is missing"
        inputs.append(found)
    return site.lowered(inputs)


def _in_source_order(site: _Site, tensor: Tensor) -> _Operand | str:
    """The operand before its transpose, or in a shape that is broadcast; of a constant, its values in that order."""
    if not tensor.is_constant:
        origin = origin_of(tensor)
        if origin is not None and (origin.source.shape, origin.places) == (site.sizes, site.origin.places):
            return origin.source
        long = [axis for axis, size in zip(site.axes, tensor.shape, strict=False) if size > 1]
        is_broadcast = len(tensor.shape) == len(site.axes) and len(long) <= 1 and None not in long
        if not is_broadcast:
            return f"'{tensor.name}' is not transposed likewise"
        return _Reshaped(tensor, tuple(site.by_source(tensor.shape, 1)))
    array = values(tensor)
    if array is None or array.ndim > len(site.axes):
        return f"'{tensor.name}' has no values that are known, or more dimensions"
    if array.size == 1 and array.ndim <= len(site.sizes):
        return tensor
    quantization = tensor.quantization
    if quantization is not None and len(quantization.scale) > 1:
        return f"'{tensor.name}' has a scale for each channel"
    wide = array.reshape((1,) * (len(site.axes) - array.ndim) + array.shape)
    known = [at for at, axis in enumerate(site.axes) if axis is not None]
    if any(wide.shape[at] > 1 for at in range(wide.ndim) if at not in known):
        return f"'{tensor.name}' makes the output larger"
    ordered = sorted(known, key=lambda at: site.axes[at] or 0)
    turned = np.ascontiguousarray(wide.transpose([at for at in range(wide.ndim) if at not in known] + ordered))
    return NewConstant(tensor, turned.reshape(site.by_source(wide.shape, 1)))


def _padded(site: _Site) -> Answer:
    chosen = site.operator.operand(1)
    amounts = integers(chosen)
    if chosen is None or amounts is None or amounts.size != 2 * len(site.axes):
        return "its paddings are computed"
    pairs = amounts.reshape(-1, 2).tolist()
    if any(axis is None and any(pair) for axis, pair in zip(site.axes, pairs, strict=True)):
        return "it pads a dimension of one element"
    turned = site.by_source(pairs, [0, 0])
    shape = [size + sum(pair) for size, pair in zip(site.sizes, turned, strict=True)]
    paddings = NewConstant(chosen, np.asarray(turned, np.int32))
    return site.lowered((site.origin.source, paddings, *site.operator.inputs[2:]), shape)


def _cut(site: _Site) -> Answer:
    box, (_, begin, size) = slice_box(site.operator), operands(site.operator, 3)
    if box is None or begin is None or size is None:
        return "its operands are computed"
    first, count = site.by_source(box.first, 0), site.by_source(box.count, 1)
    said = (NewConstant(begin, np.asarray(first, np.int32)), NewConstant(size, np.asarray(count, np.int32)))
    return site.lowered((site.origin.source, *said), count)


def _joined(site: _Site) -> Answer:
    at = axis_of(int(site.operator.option("axis", 0)), len(site.axes))
    axis = None if at is None else site.axes[at]
    if axis is None:
        return "it joins along a dimension of one element"
    sources: list[Tensor] = []
    for tensor in site.operator.inputs:
        origin = None if tensor is None else origin_of(tensor)
        if origin is None or origin.places != site.origin.places:
            return "its inputs are not transposed likewise"
        sources.append(origin.source)
    shape = list(site.sizes)
    shape[axis] = sum(source.shape[axis] for source in sources)
    others = [[size for at, size in enumerate(source.shape) if at != axis] for source in sources]
    if any(each != others[0] for each in others):
        return "its inputs are not transposed likewise"
    return site.lowered(sources, shape, axis=axis)


def _reduced(site: _Site) -> Answer:
    operator, source = site.operator, site.origin.source
    chosen = operator.operand(1)
    given = integers(chosen)
    if chosen is None or given is None:
        return "the dimensions that it takes together are computed"
    at, keeps = {axis_of(int(axis), len(site.axes)) for axis in given}, bool(operator.option("keepDims", False))
    if keeps and len(site.axes) == 4 and at == {1, 2}:
        return "kernels have a sum of their own for rows and columns that it keeps"
    taken = {axis for place, axis in enumerate(site.axes) if place in at and axis is not None}
    if not taken or (source.dtype is DType.FLOAT32 and len(taken) > 1):
        return "floats would be added in another order"
    kept = [axis for place, axis in enumerate(site.axes) if place not in at and axis is not None]
    if kept != sorted(kept):
        return "its output is transposed"
    if keeps:
        shape = [size for axis, size in enumerate(site.sizes) if axis not in taken]
        axes = NewConstant(chosen, np.asarray(sorted(taken), np.int32))
        return site.lowered((source, axes), shape, range(len(shape)), keepDims=False)
    wanted = operator.outputs[0].shape
    found = axes_leaving(site.sizes, taken, wanted)
    if found is None:
        return "its output has other dimensions than the source leaves"
    return site.lowered((source, NewConstant(chosen, np.asarray(found, np.int32))), wanted, range(len(wanted)))


_LOWERED: Mapping[str, Callable[[_Site], Answer]] = {
    **dict.fromkeys(BY_CHANNEL, _elementwise),
    **dict.fromkeys(REDUCTIONS, _reduced),
    "CONCATENATION": _joined,
    "PAD": _padded,
    "PADV2": _padded,
    "SLICE": _cut,
}


LOWERED_TRANSPOSE = Rule("lowered_transpose", Pattern("lowered", tuple(_LOWERED)), _lowered_transpose)
"""Let an operator read what is behind a transpose, and transpose its output instead.

    x -- TRANSPOSE -- RESHAPE -- PAD -- y        =>        x -- PAD -- TRANSPOSE -- RESHAPE -- y

The operator is elementwise, or PAD, SLICE, CONCATENATION, MEAN or another reduction; its other operands are constants,
whose dimensions are put into that order, or are transposed likewise, or have a value for each channel, which a RESHAPE
puts last. Further down the transpose meets the one that undoes it, before the next convolution. A network that pads by
hand, gates its channels, or adds a batch norm between convolutions of one dimension, has such a pair for each.

Exact: each output element is computed of the same elements, at another place. A reduction takes them in the same order:
floats are left alone where it would be another one, and so are reductions of rows and columns that keep them, for which
kernels have sums of their own. It is done where the model has fewer transposes after all.
"""


def transposes_in(model: Model) -> int:
    """Return how many transposes all graphs have."""
    return sum(operator.name == "TRANSPOSE" for operator in model.all_operators)
