"""Lower bounds on the head that need no schedule and no plan."""

from __future__ import annotations

from ..graph.alignment import aligned
from ..ir.head import in_head
from ..ir.model import Model


def io_lower_bound(model: Model) -> int:
    """``io_`` bound in bytes: all inputs are alive at once before the first operator, all outputs at the end.

    No static plan goes below the larger of the two sums, whatever the order and the kernels.
    """
    sums = (
        sum(aligned(tensor.nbytes) for tensor in set(tensors) if in_head(tensor))
        for tensors in (model.main.inputs, model.main.outputs)
    )
    return max(sums, default=0)
