"""Greedy in execution order: each item takes the free object whose size is closest to its own.

Source: Lee et al., "On-Device Neural Net Inference with Mobile GPUs" (2019), section 3.3, the greedy memory manager.
"""

from __future__ import annotations

from .objects import Objects
from .problem import Items


def greedy(items: Items) -> tuple[int, ...]:
    """Objects of items, earliest birth first. O(n * objects)."""
    objects = Objects(items)
    for index in sorted(range(len(items)), key=lambda i: (items[i].start, i)):
        size = items[index].size
        closest = min(objects.suitable(index), key=lambda number: abs(objects.sizes[number] - size), default=None)
        objects.use(index, closest)
    return objects.finish()
