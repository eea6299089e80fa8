"""TFLM's own planner, step by step, so that the stock head is known without running TFLM.

Source: TFLM memory_planner/greedy_memory_planner.cc, ``CalculateOffsetsIfNeeded``, and
micro_allocator.cc, ``CreatePlan`` (given offsets are taken as they are).
"""

from __future__ import annotations

from ..budget import Budget
from .problem import Item, PlanProblem


def tflm_greedy(problem: PlanProblem, budget: Budget) -> tuple[int, ...]:
    """Offsets in bytes: given offsets first, then largest first, each into the first gap. O(n^2).

    Of equal sizes the later item goes first: TFLM fills its array from the back and sorts it stably.
    """
    items = problem.items
    given = [i for i, item in enumerate(items) if item.offset is not None]
    free = [i for i, item in enumerate(items) if item.offset is None]
    free.sort(key=lambda i: (-items[i].size, -i))
    offsets: dict[int, int] = {}
    by_offset: list[int] = []
    for index in given + free:
        given_offset = items[index].offset
        offset = _first_gap(items, items[index], by_offset, offsets) if given_offset is None else given_offset
        offsets[index] = offset
        _insert(by_offset, offsets, index)
    return tuple(offsets[i] for i in range(len(items)))


def _first_gap(items: tuple[Item, ...], item: Item, by_offset: list[int], offsets: dict[int, int]) -> int:
    frontier = 0
    for other in by_offset:
        if not item.meets(items[other]):
            continue
        if offsets[other] - frontier >= item.size:
            break
        frontier = max(frontier, offsets[other] + items[other].size)
    return frontier


def _insert(by_offset: list[int], offsets: dict[int, int], index: int) -> None:
    position = len(by_offset)
    while position > 0 and offsets[by_offset[position - 1]] > offsets[index]:
        position -= 1
    by_offset.insert(position, index)
