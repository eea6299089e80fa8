"""Where an NPU expects its tensors: their offsets in the plan that its compiler wrote into the file."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import UnsupportedModelError
from ..graph.interval import intersect
from ..ir.head import in_head
from ..ir.model import Model, Tensor
from ..ir.npu import npu_operators
from .lifetimes import compute_timeline


def mark_npu_places(model: Model, planned: Mapping[Tensor, int]) -> None:
    """Fix the tensors that an operator of an NPU reads or writes, and those that are alive while it runs.

    The latter lie in memory that the NPU leaves alone, as only its compiler knows; what the plan leaves to TFLM is not
    among them, since TFLM keeps it clear of the NPU's memory. Raises UnsupportedModelError where the file says no
    offset for an operand: then its command stream is right by luck alone.
    """
    operators = [operator for graph in model.graphs for operator in npu_operators(graph)]
    if not operators:
        return
    timeline = compute_timeline(model)
    for operator in operators:
        span = timeline.spans.get(operator)
        if span is None:
            continue
        for tensor in (*operator.present_inputs(), *operator.outputs):
            if in_head(tensor) and tensor not in planned:
                raise UnsupportedModelError(
                    f"operator {operator.opcode.label}: the file has no offset for its tensor '{tensor.name}', which "
                    "the NPU's commands have addresses in; compile the model with Vela again"
                )
        for tensor, life in timeline.tensors.items():
            if tensor in planned and intersect(life, span):
                tensor.fixed_offset = planned[tensor]
