"""Greedy by Size: largest first, each into the smallest free object; objects never grow.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 4.3.
"""

from __future__ import annotations

from .objects import Objects
from .problem import Items


def greedy_by_size(items: Items) -> tuple[int, ...]:
    """Objects of items; of equal sizes the one born first goes first. O(n * objects)."""
    objects = Objects(items)
    for index in sorted(range(len(items)), key=lambda i: (-items[i].size, items[i].start, i)):
        objects.use(index, objects.best_fit(index))
    return objects.finish()
