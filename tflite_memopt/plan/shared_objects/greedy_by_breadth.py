"""Greedy by Breadth: scopes with most bytes alive first, in each the largest item first.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 4.2.
"""

from __future__ import annotations

from ..sections import maximal_sections
from .objects import Objects
from .problem import Items


def greedy_by_breadth(items: Items) -> tuple[int, ...]:
    """Objects of items. O(n * (scopes + objects))."""
    objects = Objects(items)
    by_size = sorted(range(len(items)), key=lambda i: (-items[i].size, i))
    for scope, _ in sorted(maximal_sections(items), key=lambda pair: (-pair[1], pair[0])):
        for index in by_size:
            if items[index].start <= scope < items[index].end and index not in objects.object_of:
                objects.use(index, objects.best_fit(index))
    return objects.finish()
