"""The offsets that TFLM ends up with: what is planned as it says, the rest in TFLM's own way around that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.search_limit import SearchLimit
from ..ir.model import Model, Tensor
from ..plan.check import check_in_force
from ..plan.heuristics import tflm_greedy
from ..plan.problem import Item, PlanProblem
from .layout import MemoryLayout, unplannable_tensors


def offsets_to_write(model: Model, layout: MemoryLayout, offsets: tuple[int, ...]) -> dict[Tensor, int]:
    """The offsets for the file: those of a plan, or none where TFLM does better by itself.

    Raises InfeasibleError where TFLM, which places the rest around them, would break a rule.
    TFLM places scratch at the first gap, which need not be the gap that the plan kept for it. Pins and ties are always
    kept, and a placeholder that has no offset would be in the tail.
    """
    planned = _plannable(model, layout, offsets)
    check_in_force(layout.problem, offsets_in_force(layout, planned))
    is_pinned = any(item.offset is not None for item in layout.items)
    if is_pinned or model.ties or any(tensor.is_placeholder for tensor in layout.tensors):
        return planned
    return planned if head_in_force(layout, planned) <= head_in_force(layout, {}) else {}


def _plannable(model: Model, layout: MemoryLayout, offsets: tuple[int, ...]) -> dict[Tensor, int]:
    """The offsets that can be written into the file: of tensors only, since scratch has no name there."""
    kept_back = unplannable_tensors(model)
    pairs = zip(layout.tensors, offsets, strict=False)
    return {tensor: offset for tensor, offset in pairs if tensor not in kept_back}


def head_in_force(layout: MemoryLayout, planned: Mapping[Tensor, int]) -> int:
    """TFLM's head in bytes when it places everything that is not planned around what is."""
    return head_of(layout, offsets_in_force(layout, planned))


def head_of(layout: MemoryLayout, offsets: Sequence[int]) -> int:
    """TFLM's head in bytes when every item has its offset."""
    return max((offset + item.size for offset, item in zip(offsets, layout.items, strict=True)), default=0)


def offsets_in_force(layout: MemoryLayout, planned: Mapping[Tensor, int]) -> tuple[int, ...]:
    """Where TFLM puts each item: what is planned as it says, the rest in its own way around that."""
    places = [planned.get(tensor) for tensor in layout.tensors]
    places += [None] * (len(layout.items) - len(places))
    lives = [layout.timeline.tensors[tensor] for tensor in layout.tensors]
    starts = [*(life.start for life in lives), *(item.start for item in layout.items[len(lives) :])]
    items = tuple(
        Item(item.size, start, item.end, item.alignment, place)
        for item, start, place in zip(layout.items, starts, places, strict=True)
    )
    return tflm_greedy(PlanProblem(items, layout.problem.relations), SearchLimit()).offsets
