"""Lower bounds on the arena for a fixed order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from .permissions import Intervals, Permissions, forbidden_differences
from .problem import Item, PlanProblem
from .sections import maximal_sections


def max_breadth(problem: PlanProblem) -> int:
    """Largest number of bytes that the items alive in one scope need, found by a sweep over births and deaths.

    Without relations that is the sum of their sizes. Items that relations link, directly or over others, may
    share bytes: such a component counts for what it needs at least. A given offset reaches as far as it does.
    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 5.1.
    """
    top = max((i.offset + i.size for i in problem.items if i.offset is not None), default=0)
    permissions = forbidden_differences(problem)
    # From the most crowded scope on: once even the plain sum is below what is found, so are all others.
    for scope, breadth in sorted(maximal_sections(problem.items), key=lambda pair: -pair[1]):
        if breadth <= top:
            break
        alive = [i for i in permissions if problem.items[i].start <= scope < problem.items[i].end]
        shared = sum(problem.items[i].size for i in alive)
        needed = sum(_component_bytes(problem.items, permissions, c) for c in _components(permissions, alive))
        top = max(top, breadth - shared + needed)
    return top


def _components(permissions: Permissions, alive: Sequence[int]) -> Iterator[list[int]]:
    """What is linked by relations among the items alive in one scope."""
    unseen = set(alive)
    for first in alive:
        if first not in unseen:
            continue
        unseen.discard(first)
        component = [first]
        for index in component:
            linked = sorted(unseen & permissions[index].keys())
            unseen.difference_update(linked)
            component += linked
        yield component


def _component_bytes(items: Sequence[Item], permissions: Permissions, component: Sequence[int]) -> int:
    """A lower bound: the best pair of related items, or a set of items of which no two are related."""
    pairs = (
        _pair_bytes(items[i], items[j], permissions[i][j])
        for i in component
        for j in permissions[i].keys() & set(component)
        if i < j
    )
    apart = max(_independent_bytes(items, permissions, order) for order in _orders(items, permissions, component))
    return max(apart, max(pairs, default=0))


def _orders(items: Sequence[Item], permissions: Permissions, component: Sequence[int]) -> Iterator[list[int]]:
    """Two ways to grow an independent set: largest first, and fewest relations first."""
    inside = set(component)
    yield sorted(component, key=lambda i: (-items[i].size, i))
    yield sorted(component, key=lambda i: (len(permissions[i].keys() & inside), -items[i].size, i))


def _independent_bytes(items: Sequence[Item], permissions: Permissions, order: Collection[int]) -> int:
    """Bytes of a set of items, grown in this order, of which no two may share bytes."""
    blocked: set[int] = set()
    total = 0
    for index in order:
        if index not in blocked:
            total += items[index].size
            blocked.update(permissions[index])
    return total


def _pair_bytes(item: Item, other: Item, forbidden: Intervals) -> int:
    """Fewest bytes that two related items take together, over all differences that are not forbidden.

    These bytes grow as the difference leaves the range where one item holds the other: the best difference is
    one end of that range, or the permitted one next to it.
    """
    low, high = sorted((0, other.size - item.size))
    ends = {low, high} | {end for interval in forbidden for end in interval}
    allowed = (d for d in ends if not any(a < d < b for a, b in forbidden))
    return min(max(d + item.size, other.size) - min(d, 0) for d in allowed)
