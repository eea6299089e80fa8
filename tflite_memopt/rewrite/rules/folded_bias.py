"""A float ADD of one constant for each channel goes into the convolution before it, as its bias.

    x -- CONV_2D -- ADD of a constant -- y        =>        x -- CONV_2D with the constant as bias -- y

and likewise through a RESHAPE or SQUEEZE that keeps the channels. The ADD's activation becomes the convolution's.

Exact: a float kernel adds the bias to the complete sum of products and then clamps (tensorflow/lite/kernels/internal/
reference/conv.h), which is what the ADD does. It is done only where the convolution has no activation and no bias but
zeros. A sum is never -0, so that adding +0 to it first changes no bit. Integers are left alone: the ADD rounds them
once more.

The converter leaves such an ADD behind a dilated convolution; without it one tensor of the output's size is gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...kernels.relations import operands
from ..pattern import Match, Pattern
from ..reshaping import write_reshape
from ..rule import Rule

_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_RESHAPES = ("RESHAPE", "SQUEEZE")


@dataclass(frozen=True)
class FoldedBias:
    """The convolution, what is between it and the ADD, the ADD, and its constant as a vector."""

    convolution: Operator
    reshape: Operator | None
    add: Operator
    bias: Tensor


def _check(match: Match) -> FoldedBias | str | None:
    add, convolution = match.anchor, match["convolution"]
    made, output = convolution.outputs[0], add.outputs[0]
    if output.dtype is not DType.FLOAT32:
        return None
    bias = next((tensor for tensor in add.present_inputs() if tensor.is_constant), None)
    found = None if bias is None else values(bias)
    if bias is None or found is None or found.size != made.shape[-1] or bias.shape[-1:] != made.shape[-1:]:
        return None
    reshape = match.operators.get("reshape")
    between = [each.outputs[0] for each in (convolution, reshape) if each is not None]
    shared = next((tensor.name for tensor in between if len(tensor.uses) > 1 or match.is_returned(tensor)), None)
    if shared is not None:
        return f"'{shared}' is needed by others too"
    if output.shape != between[-1].shape or output.shape[-1] != made.shape[-1]:
        return "the constant is broadcast, or does not meet the convolution's channels"
    if int(convolution.option("fusedActivationFunction", 0)):
        return "the convolution has an activation of its own"
    return _reason_against_sums(convolution) or FoldedBias(convolution, reshape, add, bias)


def _reason_against_sums(convolution: Operator) -> str | None:
    x, weights, old = operands(convolution, 3)
    if x is None or weights is None or weights.dtype is not DType.FLOAT32:
        return "it is hybrid: its sums are integers"
    zeros = None if old is None else values(old)
    if old is not None and (zeros is None or zeros.view(np.uint32).any()):
        return "the convolution has a bias of its own: two constants, added one by one, round twice"
    return None


def _rewrite(found: FoldedBias, edit: Editor) -> None:
    convolution, output = found.convolution, found.add.outputs[0]
    bias = found.bias
    if len(bias.shape) != 1:
        bias = edit.constant(f"{bias.name}/vector", np.asarray(values(bias)).reshape(-1))
    activation = int(found.add.option("fusedActivationFunction", 0))
    y = output
    if found.reshape is not None:
        y = edit.activation(f"{output.name}/image", convolution.outputs[0].shape, output)
    edit.twin(convolution, (*convolution.inputs[:2], bias), (y,), fusedActivationFunction=activation)
    if found.reshape is not None:
        write_reshape(edit, found.reshape, y, output)


_CONVOLUTION = Pattern("convolution", _CONVOLUTIONS)
FOLDED_BIAS = tuple(
    Rule("folded_bias", Pattern("add", ("ADD",), {slot: inner}), _check, _rewrite)
    for slot in (0, 1)
    for inner in (_CONVOLUTION, Pattern("reshape", _RESHAPES, {0: _CONVOLUTION}))
)
"""For the constant on either side, with a reshape between and without."""
