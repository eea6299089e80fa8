"""Greedy by Size Improved: stages between the positional maxima; in a stage the pair with the least idle time.

Items of a stage count as of one size. First those as large as the first positional maximum, then those between it
and the second, then those as large as the second, and so on.
Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence

from .bounds import positional_maxima
from .objects import Objects
from .problem import Items


def greedy_by_size_improved(items: Items) -> tuple[int, ...]:
    """Objects of items. O(n * objects * largest stage)."""
    objects, maxima = Objects(items), positional_maxima(items)
    stages: dict[tuple[int, bool], list[int]] = {}
    for index in sorted(range(len(items)), key=lambda i: (-items[i].size, items[i].start, i)):
        size = items[index].size
        stages.setdefault((sum(limit > size for limit in maxima), size not in maxima), []).append(index)
    # Larger than the k-th maximum but smaller than the one before: the same count, and before its equals.
    for key in sorted(stages, key=lambda stage: (stage[0], not stage[1])):
        _fill_stage(items, objects, stages[key])
    return objects.finish()


def _fill_stage(items: Items, objects: Objects, stage: Sequence[int]) -> None:
    left = list(stage)
    while left:
        pairs = [(gap, left.index(i), i, number) for i in left for gap, number in _choices(items, objects, i)]
        if pairs:
            _, _, index, number = min(pairs)
            objects.use(index, number)
        else:
            index = left[0]
            objects.use(index, objects.best_fit(index))
        left.remove(index)


def _choices(items: Items, objects: Objects, index: int) -> list[tuple[int, int]]:
    """(idle scopes, object) of each object that is free for the item and large enough."""
    large = (number for number, size in enumerate(objects.sizes) if size >= items[index].size)
    gaps = ((objects.idle_scopes(number, index), number) for number in large)
    return [(gap, number) for gap, number in gaps if gap is not None]
