"""Rules about shapes and redundant operators: reshapes, identities, dead operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, combinations

import numpy as np

from ...model.ir.model import Operator, Tensor
from ...model.ir.tensors import QUANTIZED, integers, is_quantized
from ...operators.boxes import CUTS, RESHAPES, axis_of, operands
from ...operators.editor import Editor
from ...operators.reduce import REDUCTIONS
from ...operators.table import OPERATORS, kind_of
from ...operators.window import POOLS
from .engine import (
    Answer,
    Match,
    Pattern,
    Proposal,
    Rule,
    is_dead,
    is_shape_computed,
    leave_out,
    read_instead,
    source_for_one_reader,
    source_of,
)


def shape_is_said(operator: Operator) -> bool:
    """Tell whether it is a reshape to a shape that is known."""
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
    """Tell whether EXPAND_DIMS or SQUEEZE adds or takes out the axis in which the shapes differ."""
    many, few = (y, x) if like.name == "EXPAND_DIMS" else (x, y)
    chosen = like.option("squeezeDims") if like.name == "SQUEEZE" else integers(like.operand(1))
    if like.name == "RESHAPE" or chosen is None or len(chosen) != 1:
        return False
    at = int(chosen[0]) % len(many.shape)
    return many.shape[at] == 1 and (*many.shape[:at], *many.shape[at + 1 :]) == few.shape


def _dead_operators(match: Match) -> Answer:
    # The anchor is out of the graph already when a proposal is carried out.
    return Proposal(lambda _: None) if is_dead(match.graph, match.anchor) else None


DEAD_OPERATORS = Rule("dead_operators", Pattern("dead", ()), _dead_operators)
r"""Drop operators whose results nothing reads.

    x --> op --> y           x --> op --> y
     \--> op --> z      =>
    (z: no reader, not returned)

Exact: nothing sees the values. An operator with a side effect is needed: one that writes a variable, calls a subgraph
or is custom. Tensors that only the dropped operator has read are dead as well, and are removed.
"""


def _identity(match: Match) -> Answer:
    operator = match.anchor
    x = operator.operand(kind_of(operator).tflm.activation)
    if x is None or len(operator.outputs) != 1:
        return None
    y = operator.outputs[0]
    if x.shape != y.shape or x.dtype is not y.dtype or not _IDENTITIES[operator.name](operator):
        return None
    if match.is_returned(y):
        return f"it writes '{y.name}', which the graph returns"
    return leave_out(source_of(x, y), y)


def _is_fixed(operator: Operator) -> bool:
    """Return a new shape that is computed is left alone: it may be another one at run time."""
    return all(tensor is None or tensor.is_constant for tensor in operator.inputs[1:])


def _keeps_order(operator: Operator) -> bool:
    x, chosen = operands(operator, 2)
    order = integers(chosen)
    if x is None or order is None or order.size != len(x.shape):
        return False
    axes = [axis_of(axis, len(x.shape)) for axis in order.tolist()]
    moved = [axis for axis in axes if axis is not None and x.shape[axis] > 1]
    return None not in axes and moved == sorted(moved)


def _pads_nothing(operator: Operator) -> bool:
    paddings = integers(operator.operand(1))
    return paddings is not None and not paddings.any()


def _cuts_nothing(operator: Operator) -> bool:
    x, box = operator.operand(0), CUTS[operator.name](operator)
    return x is not None and box is not None and box.count == x.shape


def _keeps_scale(operator: Operator) -> bool:
    y = operator.outputs[0]
    return y.dtype in QUANTIZED and is_quantized(y.quantization)


def _pools_nothing(operator: Operator) -> bool:
    windows = ("filterHeight", "filterWidth", "strideH", "strideW")
    if operator.option("fusedActivationFunction", 0) or operator.outputs[0].dtype not in QUANTIZED:
        return False
    return all(operator.option(name, 0) == 1 for name in windows)


_IDENTITIES: Mapping[str, Callable[[Operator], bool]] = {
    **dict.fromkeys(POOLS, _pools_nothing),
    "BROADCAST_TO": _is_fixed,
    "CAST": lambda _: True,
    "CONCATENATION": lambda join: len(join.inputs) == 1 and not join.option("fusedActivationFunction", 0),
    "EXPAND_DIMS": _is_fixed,
    "MIRROR_PAD": _pads_nothing,
    "PAD": _pads_nothing,
    "PADV2": _pads_nothing,
    "QUANTIZE": _keeps_scale,
    "RESHAPE": _is_fixed,
    "SLICE": _cuts_nothing,
    "SPLIT": lambda _: True,
    "SPLIT_V": lambda _: True,
    "SQUEEZE": _is_fixed,
    "STRIDED_SLICE": _cuts_nothing,
    "TILE": _is_fixed,
    "TRANSPOSE": _keeps_order,
}
"""Tell whether an operator with one output, of the shape and type of its input, keeps every element where it was."""

IDENTITY = Rule("identity", Pattern("identity", tuple(_IDENTITIES)), _identity)
"""Drop operators that change nothing.

    x -- RESHAPE to the shape of x -- y -- op        =>        x -- op

Exact: shape, type and quantization of ``y`` are those of ``x``, and the kernel copies every element to where it was:

    RESHAPE, SQUEEZE, EXPAND_DIMS   the shape stays
    BROADCAST_TO, TILE              the shape stays, so nothing is repeated
    TRANSPOSE                       the dimensions longer than one stay in order
    PAD, PADV2, MIRROR_PAD          all paddings are 0
    SLICE, STRIDED_SLICE            the whole is cut out
    CONCATENATION, SPLIT, SPLIT_V   one input, one output
    CAST                            to the same type
    QUANTIZE                        integers of one scale: a multiplier of exactly 1 (TFLM quantize_common.cc)
    AVERAGE_POOL_2D, MAX_POOL_2D    integers, windows of one element, stride 1, no activation; a float pool would not
                                    let infinities and NaN through (its output is clamped)

Memory never grows: ``x`` and ``y`` are of one size and alive together at the operator, as one tensor they are alive
where either was.
"""


def _consecutive_reshapes(match: Match) -> Answer:
    first, second = match["first"], match.anchor
    if is_shape_computed(first) or is_shape_computed(second):
        return "a shape is computed"
    return read_instead(second, source_for_one_reader(match, first))


CONSECUTIVE_RESHAPES = Rule(
    "consecutive_reshapes", Pattern("second", ("RESHAPE",), {0: Pattern("first", RESHAPES)}), _consecutive_reshapes
)
"""Merge two consecutive reshapes.

    x -- RESHAPE, SQUEEZE or EXPAND_DIMS -- RESHAPE -- y        =>        x -- RESHAPE -- y

Exact: all of them keep the elements in their order. The second one stays as it is, so that the firmware needs no
other kernel than before.
"""


def _undone_reshapes(match: Match) -> Answer:
    first, second = match["first"], match.anchor
    x, output = first.inputs[0], second.outputs[0]
    if x is None or x.shape != output.shape:
        return None
    if is_shape_computed(first) or is_shape_computed(second):
        return "a shape is computed"
    if match.is_returned(output):
        return f"it writes '{output.name}', which the graph returns"
    between = source_of(first.outputs[0], output)
    return leave_out(between if isinstance(between, str) else source_of(x, between), output)


UNDONE_RESHAPES = Rule(
    "undone_reshapes", Pattern("second", RESHAPES, {0: Pattern("first", RESHAPES)}), _undone_reshapes
)
"""Drop two reshapes of which the second one undoes the first.

    x -- RESHAPE -- EXPAND_DIMS to the shape of x -- y -- op        =>        x -- op

Each of the two is a RESHAPE, SQUEEZE or EXPAND_DIMS. Exact: both keep the elements in their order. The first one stays
where others read it. Between any two convolutions of one dimension Keras has such a pair.
"""


MOST_DIMENSIONS = 4
"""Of what kernels of TFLM broadcast, reduce, or pad."""


def _reduced_reshape(match: Match) -> Answer:
    reduction, reshape = match.anchor, match["reshape"]
    shaped, chosen = operands(reduction, 2)
    if shaped is None or reduction.option("keepDims", False):
        return "it keeps the dimensions that it takes together"
    given = integers(chosen)
    if given is None or is_shape_computed(reshape):
        return "its dimensions or a shape are computed"
    source, output = source_for_one_reader(match, reshape), reduction.outputs[0]
    if isinstance(source, str):
        return source
    taken = {axis_of(int(axis), len(shaped.shape)) for axis in given.ravel()}
    axes = _axes_in(source.shape, shaped.shape, taken, output.shape)
    if axes is None:
        return "the reshape does more than add or drop dimensions of 1"

    def write(edit: Editor) -> None:
        chosen = edit.constant(f"{output.name}/axes", np.asarray(axes, np.int32))
        edit.twin(reduction, (source, chosen), (output,))

    return Proposal(write)


def _axes_in(
    source: tuple[int, ...], shaped: tuple[int, ...], taken: set[int | None], wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Dimensions of ``source`` that are those ``taken`` of ``shaped``, and leave the shape ``wanted``."""
    long = [axis for axis, size in enumerate(source) if size != 1]
    others = [axis for axis, size in enumerate(shaped) if size != 1]
    if [source[axis] for axis in long] != [shaped[axis] for axis in others] or len(source) > MOST_DIMENSIONS:
        return None
    sure = {mine for mine, theirs in zip(long, others, strict=True) if theirs in taken}
    return axes_leaving(source, sure, wanted) or None


def axes_leaving(shape: Sequence[int], taken: Collection[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """Return the dimensions to drop so that ``wanted`` is left of a shape: those taken, and some of one element.

    It drops as few as possible, and inner dimensions first, since the outer one is the batch. None where no choice
    leaves ``wanted``.
    """
    short = [axis for axis, size in enumerate(shape) if size == 1]
    for more in chain.from_iterable(combinations(reversed(short), count) for count in range(len(short) + 1)):
        axes = sorted({*taken, *more})
        if [size for axis, size in enumerate(shape) if axis not in axes] == list(wanted):
            return tuple(axes)
    return None


REDUCED_RESHAPE = Rule(
    "reduced_reshape", Pattern("reduction", REDUCTIONS, {0: Pattern("reshape", RESHAPES)}), _reduced_reshape
)
"""Drop a reshape that adds or removes dimensions of 1 before MEAN, SUM, REDUCE_MAX, or REDUCE_MIN.

    x (1, L, 1, C) -- RESHAPE (1, L, C) -- MEAN over 1        =>        x (1, L, 1, C) -- MEAN over 1 and 2

Global pooling of a sequence that stands has such a pair. Exact: the same elements are taken together, in the same
order (reference/reduce.h, ``Reduce``, goes through the input from its first element to its last), and as many. Results
that keep their dimensions are left alone: for images TFLM has a sum of its own then (micro/kernels/reduce_common.cc).
"""


def _flattened_input(match: Match) -> Answer:
    dense, reshape = match.anchor, match["reshape"]
    weights, output = dense.inputs[1], dense.outputs[0]
    if len(output.shape) != 2:
        return "it keeps the dimensions of its input"
    if weights is None or dense.option("weightsFormat", 0):
        return "its weights are shuffled"
    if is_shape_computed(reshape):
        return "a shape is computed"
    source = source_for_one_reader(match, reshape)
    if isinstance(source, str):
        return source
    if source.elements != output.shape[0] * weights.shape[-1]:
        return "its input has more than the rows that it multiplies"
    return read_instead(dense, source, **({"keepNumDims": False} if dense.option("keepNumDims", False) else {}))


FLATTENED_INPUT = Rule(
    "flattened_input", Pattern("dense", ("FULLY_CONNECTED",), {0: Pattern("reshape", RESHAPES)}), _flattened_input
)
"""Drop a reshape before FULLY_CONNECTED, whose kernel flattens its input.

    x (1, 4, 4, 8) -- RESHAPE (1, 128) -- FULLY_CONNECTED        =>        x (1, 4, 4, 8) -- FULLY_CONNECTED

Every network that goes from an image to scores has such a pair. An output of two dimensions has them whether those of
the input are kept (keepNumDims, as PyTorch's converter writes it) or not. Exact: rows and their length come from the
output and from the weights, in LiteRT (kernels/fully_connected.cc, ``PrepareImpl``) and in TFLM with its own kernels,
CMSIS-NN's and esp-nn's (micro/kernels/fully_connected.cc, cmsis_nn/fully_connected.cc, esp_nn/fully_connected.cc: the
number of rows is that of the output). The reshape takes some 90 bytes of the tail on 32 bits.
"""


def _lean_reshape(match: Match) -> Answer:
    reshape = match.anchor
    source, output = reshape.inputs[0], reshape.outputs[0]
    said = [tensor for tensor in reshape.inputs[1:] if tensor is not None]
    if source is None or any(not tensor.is_constant for tensor in said):
        return None
    if source.elements != output.elements or min((*source.shape, *output.shape), default=0) < 1:
        return "a shape is not known"
    at = added_dimension(source.shape, output.shape) if OPERATORS["EXPAND_DIMS"].tflm.takes(source.dtype) else None
    if at is None:
        return Proposal(lambda edit: edit.reshape(source, output, has_operand=False)) if said else None

    def write(edit: Editor) -> None:
        axis = edit.constant(f"{output.name}/axis", np.asarray(at, np.int32))
        edit.operator("EXPAND_DIMS", (source, axis), (output,), "ExpandDimsOptions")

    return Proposal(write)


def added_dimension(shape: tuple[int, ...], longer: tuple[int, ...]) -> int | None:
    """Find the place where ``longer`` has a dimension of 1 more than ``shape``, and is the same otherwise; None where
    it is not.

    >>> added_dimension((1, 8, 4), (1, 8, 1, 4))
    2
    """
    places = (at for at in range(len(longer)) if (*shape[:at], 1, *shape[at:]) == longer)
    return max(places, default=None)


LEAN_RESHAPE = Rule("lean_reshape", Pattern("reshape", ("RESHAPE",)), _lean_reshape)
"""Replace a RESHAPE by an EXPAND_DIMS, or leave out its shape operand: TFLM keeps fewer bytes for them.

    x (1, 8, 4) -- RESHAPE (1, 8, 1, 4)        =>        x -- EXPAND_DIMS at 2
    x (1, 8, 4) -- RESHAPE (1, 32)             =>        x -- RESHAPE, told by its options

TFLM takes the shape of a RESHAPE from the file's output, and keeps a structure of every tensor of the file: 12 bytes in
the tail on 32 bits, and 24 while it plans. It keeps 36 bytes of options for each RESHAPE, and nothing for EXPAND_DIMS
(micro/kernels/reshape_common.cc, expand_dims.cc, tflite-micro 90b983c2b3f1).

Exact: all of them copy the same bytes, or none. LiteRT takes the shape from the options where there is no operand
(tensorflow/lite/kernels/reshape.cc, ``GetOutputShape``).
"""
