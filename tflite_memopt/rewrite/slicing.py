"""Writes a new STRIDED_SLICE without masks: what the rules about slices share."""

from __future__ import annotations

import numpy as np

from ..ir.editor import Editor
from ..ir.model import Operator, Tensor
from ..kernels.relations import Grid


def write_slice(edit: Editor, like: Operator, grid: Grid, source: Tensor, output: Tensor) -> None:
    """A slice of ``source`` that takes the elements of ``grid`` and keeps all dimensions, by the code of ``like``."""
    first, stride, count = (np.asarray(each, np.int32) for each in (grid.first, grid.stride, grid.count))
    limits = {"begin": first, "end": first + stride * (count - 1) + 1, "strides": stride}
    operands = [edit.constant(f"{output.name}/{name}", values) for name, values in limits.items()]
    edit.twin(like, (source, *operands), (output,), beginMask=0, endMask=0, shrinkAxisMask=0)
