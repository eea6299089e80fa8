"""Rules about slices of joined tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from ...kernels.support import MAX_PARTS
from ...model.ir.model import Operator, Tensor
from ...operators.boxes import CUTS, RESHAPES, Box, Grid
from ...operators.editor import Editor
from .channels import joined_axis
from .engine import Answer, Match, Pattern, Proposal, Rule, is_shape_computed, source_of
from .pixels import write_slice

_JOINS = ("CONCATENATION", "PACK")


@dataclass(frozen=True)
class TakenParts:
    """A slice of joined tensors, and the neighbors among these that it takes elements of.

    ``box``: what it takes of the neighbors when they are joined; None where it takes all of them.
    """

    cut: Operator
    join: Operator
    parts: tuple[Tensor, ...]
    box: Box | None


def _slice_of_concatenation(least: int, match: Match) -> Answer:
    found = _taken_by(match.anchor)
    if found is None or isinstance(found, str) or len(found.join.inputs) < least:
        return found if isinstance(found, str) else None
    joined = found.join.outputs[0]
    for tensor in _copies_of(joined):
        if match.is_returned(tensor):
            return f"'{tensor.name}' is needed by others too"
    readers = [*_readers_of(joined)]
    for reader in readers:
        other = _taken_by(reader) if reader.name in CUTS else None
        if not isinstance(other, TakenParts):
            return f"'{joined.name}' is needed by others too"
        if other.box is not None and len(other.parts) > 1 and len(readers) > 1:
            return f"several slices of '{joined.name}', of which one cuts through what it joins"
    return Proposal(partial(_write_parts, found))


def _taken_by(cut: Operator) -> TakenParts | str | None:
    """Return what a slice takes of a join before it; None where that is no less than all, or is not known."""
    source, box = cut.inputs[0], CUTS[cut.name](cut)
    join = None if source is None else _join_of(source)
    if join is None or source is None or box is None or min((*box.count, *source.shape), default=0) < 1:
        return None
    is_direct = join.outputs[0] is source and join.name == "CONCATENATION"
    found = _along_axis(cut, join, box) if is_direct else _in_one_run(cut, join, box)
    if found is None or len(found.parts) == len(join.inputs):
        return None
    if join.option("fusedActivationFunction", 0):
        return "what it slices has a fused activation"
    for part in found.parts:
        for other in (join.outputs[0], cut.outputs[0]):
            reason = source_of(part, other)
            if isinstance(reason, str):
                return reason
    return found


def _join_of(tensor: Tensor) -> Operator | None:
    """Return what joins the tensor, which may be reshaped since."""
    writer = tensor.producer
    while writer is not None and writer.name in RESHAPES and not is_shape_computed(writer):
        source = writer.inputs[0]
        writer = None if source is None else source.producer
    return writer if writer is not None and writer.name in _JOINS else None


def _copies_of(joined: Tensor) -> Iterator[Tensor]:
    """Yield the joined tensor, and what it is reshaped to."""
    yield joined
    for use in joined.uses:
        if use.operator.name in RESHAPES and use.slot == 0:
            yield from _copies_of(use.operator.outputs[0])


def _readers_of(joined: Tensor) -> Iterator[Operator]:
    """Yield the operators that read it, or what it is reshaped to."""
    for tensor in _copies_of(joined):
        for use in tensor.uses:
            if use.operator.name not in RESHAPES or use.slot != 0:
                yield use.operator


def _along_axis(cut: Operator, join: Operator, box: Box) -> TakenParts | None:
    """What a slice of a concatenation takes, by the places along its axis."""
    axis = joined_axis(join)
    parts = [*join.present_inputs()]
    if axis is None or any(len(part.shape) != len(box.first) for part in parts):
        return None
    first, count = box.first[axis], box.count[axis]
    spanned = _spanned(parts, [part.shape[axis] for part in parts], first, first + count)
    if spanned is None:
        return None
    taken, start, size = spanned
    whole = [size if at == axis else length for at, length in enumerate(join.outputs[0].shape)]
    inside = Box((*box.first[:axis], first - start, *box.first[axis + 1 :]), box.count)
    return TakenParts(cut, join, taken, None if tuple(whole) == inside.count else inside)


def _in_one_run(cut: Operator, join: Operator, box: Box) -> TakenParts | None:
    """What a slice takes of tensors that lie one behind the other, if these are whole: by the places of elements."""
    shape, axis = cut.required(0).shape, int(join.option("axis", 0))
    outer = join.outputs[0].shape[: axis % len(join.outputs[0].shape)]
    long = next((at for at, count in enumerate(box.count) if count > 1), len(shape))
    if prod(outer) != 1 or box.count[long + 1 :] != shape[long + 1 :]:
        return None
    first = int(np.ravel_multi_index(box.first, shape))
    parts = [*join.present_inputs()]
    spanned = _spanned(parts, [part.elements for part in parts], first, first + prod(box.count))
    if spanned is None or spanned[1:] != (first, prod(box.count)):
        return None
    return TakenParts(cut, join, spanned[0], None)


def _spanned(
    parts: Sequence[Tensor], sizes: Sequence[int], first: int, last: int
) -> tuple[tuple[Tensor, ...], int, int] | None:
    """Return the parts that have places from ``first`` to ``last``, where the first of them begins, and their size."""
    ends = np.cumsum(sizes)
    if not sizes or min(sizes) < 1 or last > ends[-1]:
        return None
    low, high = (int(np.searchsorted(ends, at, side="right")) for at in (first, last - 1))
    start = int(ends[low]) - sizes[low]
    return tuple(parts[low : high + 1]), start, int(ends[high]) - start


def _write_parts(found: TakenParts, edit: Editor) -> None:
    output = found.cut.outputs[0]
    source = _joined(found, edit) if len(found.parts) > 1 else found.parts[0]
    if found.box is not None:
        _write_cut(found.cut, found.box, source, edit)
    elif source is not output:
        is_returned = any(output is each for each in edit.graph.outputs)
        if source.shape == output.shape and not is_returned:
            edit.graph.replace_uses(output, source)
        else:
            edit.reshape(source, output)


def _joined(found: TakenParts, edit: Editor) -> Tensor:
    """Join the parts; into the slice's output, where that is all of them in their shape."""
    whole, output = found.join.outputs[0], found.cut.outputs[0]
    at = int(found.join.option("axis", 0)) % len(whole.shape)
    size = len(found.parts) if found.join.name == "PACK" else sum(part.shape[at] for part in found.parts)
    shape = (*whole.shape[:at], size, *whole.shape[at + 1 :])
    is_all = found.box is None and shape == output.shape
    joined = output if is_all else edit.activation(f"{output.name}/joined", shape, whole)
    fields = {"valuesCount": size} if found.join.name == "PACK" else {}
    edit.twin(found.join, found.parts, (joined,), **fields)
    return joined


def _write_cut(cut: Operator, box: Box, source: Tensor, edit: Editor) -> None:
    output = cut.outputs[0]
    if cut.name == "SLICE":
        edit.slice(source, box.first, box.count, output)
        return
    write_slice(cut, Grid(box.first, (1,) * len(box.first), box.count), source, output, edit)


SLICE_OF_CONCATENATION = Rule(
    "slice_of_concatenation", Pattern("cut", tuple(CUTS)), partial(_slice_of_concatenation, 1)
)
r"""Let a slice of joined tensors read those of them that it takes elements of.

    a --\                                                 a  (dead, if nothing else reads it)
    b -- CONCATENATION or PACK -- SLICE of b -- op  =>    b -- op
    c --/                                                 c  (dead)

A slice inside of one tensor is a slice of that, or the tensor itself. One that takes of several is a smaller join, or a
slice of that. Between the join and the slice may be reshapes, and the slice may be STRIDED_SLICE without steps, if then
it takes whole tensors that lie one behind the other.

Exact: all of these copy elements, and quantizations are alike. Memory never grows: all readers of the joined tensor are
such slices, so it goes; what they read instead are pieces of it, which were alive before. Every last output
(``y[:, -1]``) of a recurrent network from PyTorch is such a slice, of as many tensors as it has steps.
"""

SLICE_OF_LONG_CONCATENATION = replace(  # of more tensors than TFLM joins at once, which then need not be nested
    SLICE_OF_CONCATENATION, check=partial(_slice_of_concatenation, MAX_PARTS + 1)
)
