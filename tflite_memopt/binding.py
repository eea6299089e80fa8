"""Which operator would have to need less for the head to shrink."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .budget import Budget
from .ir.model import Model
from .placing import Placed
from .plan.tflm_greedy import tflm_greedy
from .report.model import BindingStep


def binding_step(model: Model, placed: Placed) -> BindingStep | None:
    """The operator during which the plan occupies most bytes, what is shared counted once; the first of equals.

    None for a model without operators.
    """
    return max(_steps(model, placed), key=lambda step: step.bytes, default=None)


def _steps(model: Model, placed: Placed) -> Iterator[BindingStep]:
    layout = placed.layout
    # Without offsets in the file TFLM places everything by itself.
    offsets = placed.plan.offsets if placed.planned else tflm_greedy(layout.problem, Budget()).offsets
    placements = list(zip(layout.items, offsets, strict=True))
    for number, graph in enumerate(model.graphs):
        for position, operator in enumerate(graph.operators):
            span = layout.timeline.spans.get(operator)
            if span is None:
                continue
            live = [(at, at + item.size) for item, at in placements if item.start <= span.start < item.end]
            output = operator.outputs[0].name if operator.outputs else ""
            yield BindingStep(number, position, operator.opcode.label, output, _covered(live))


def _covered(ranges: Iterable[tuple[int, int]]) -> int:
    """Bytes in the union of half-open ranges."""
    covered = reached = 0
    for start, end in sorted(ranges):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered
