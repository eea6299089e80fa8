"""A matrix that is transposed for a BATCH_MATMUL is handed over in the layout that the kernel multiplies in.

    b -- TRANSPOSE to (..., K, N) -- BATCH_MATMUL(a, .)
                                    =>        b -- TRANSPOSE to (..., N, K) -- BATCH_MATMUL(a, .), adjY

Without adjY TFLM keeps a transposed copy of the right side in the tail for good, one for each operator, and fills it at
every run; with adjX one of the left side (micro/kernels/batch_matmul.cc, commit 90b983c2b3f1,
``InitializeTemporaries``). In attention that is most of the tail.

Exact: the kernel multiplies the same numbers in the same order, transposed by TRANSPOSE in place of the kernel itself.
Where that leaves no two dimensions in another order, TRANSPOSE is left out by the rule ``identity``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...ir.constants import integers
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...ir.quantization import quantized_alike
from ...kernels.relations import axis_of, operands
from ..pattern import Match, Pattern
from ..rule import Rule

_FLAGS = ("adjX", "adjY")


@dataclass(frozen=True)
class AdjointMatmul:
    """The product, which of its sides is transposed, how, and the new order of the dimensions of ``source``."""

    product: Operator
    slot: int
    transpose: Operator
    source: Tensor
    order: tuple[int, ...]


def _check(slot: int, match: Match) -> AdjointMatmul | str | None:
    product, transpose = match.anchor, match["transpose"]
    if bool(product.option(_FLAGS[slot], False)) != (slot == 0):
        return None  # the kernel keeps no copy of this side
    source, chosen = operands(transpose, 2)
    order, made = integers(chosen), transpose.outputs[0]
    if source is None or order is None or order.size != len(made.shape) or order.size < 2:
        return "the order of its dimensions is computed"
    if len(made.uses) > 1 or match.is_returned(made):
        return f"'{made.name}' is needed by others too"
    if len({tensor.dtype for tensor in product.present_inputs()}) > 1:
        return "it is hybrid: another kernel computes it"
    if not quantized_alike(source.quantization, made.quantization):
        return f"'{made.name}' is quantized otherwise than '{source.name}'"
    axes = [axis_of(axis, order.size) for axis in order.tolist()]
    if None in axes:
        return None
    *outer, rows, columns = (axis for axis in axes if axis is not None)
    return AdjointMatmul(product, slot, transpose, source, (*outer, columns, rows))


def _rewrite(found: AdjointMatmul, edit: Editor) -> None:
    side = found.product.inputs[found.slot]
    assert side is not None
    shape = [found.source.shape[axis] for axis in found.order]
    turned = edit.activation(f"{side.name}/adjoint", shape, side)
    order = edit.constant(f"{turned.name}/order", np.asarray(found.order, np.int32))
    edit.twin(found.transpose, (found.source, order), (turned,))
    inputs = tuple(turned if slot == found.slot else tensor for slot, tensor in enumerate(found.product.inputs))
    edit.twin(found.product, inputs, found.product.outputs, **{_FLAGS[found.slot]: found.slot == 1})


ADJOINT_MATMUL = tuple(
    Rule(
        "adjoint_matmul",
        Pattern("product", ("BATCH_MATMUL",), {slot: Pattern("transpose", ("TRANSPOSE",))}),
        partial(_check, slot),
        _rewrite,
    )
    for slot in (1, 0)
)
"""For the right side and for the left one."""
