"""Which items are worth most in a memory, were its gaps no matter: a bound, and often the answer itself.

A temporal knapsack: items are alive for a while, and those that are alive together take no more than there is. A
dynamic program goes through the births; its states are the sets of chosen items that are alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from .problem import PlanProblem

_STATES = 500
"""More at a time are made fewer."""
_Chain = tuple[int, "_Chain"] | None
"""Chosen items, the last one first."""
_States = dict[int, tuple[int, int, _Chain]]
"""By the chosen items that are alive, as bits: what all chosen ones are worth, the bytes of those alive, and which."""


@dataclass(frozen=True)
class MostValuable:
    """No items that fit into the memory are worth more than ``worth``; where these ``items`` fit, they are the best."""

    worth: int
    items: frozenset[int]


def most_valuable(plan: PlanProblem, worth: Sequence[int], capacity: int, among: Iterable[int]) -> MostValuable:
    """Items that may share bytes count as the two of them that need most. Bytes; ``worth`` by item, in any unit."""
    items, load = plan.items, _Load(plan)
    free = [each for each in among if not items[each].size]
    waiting = sorted((items[each].start, each) for each in among if 0 < items[each].size <= capacity and worth[each])
    states: _States = {0: (0, 0, None)}
    ends = sorted(((items[item].end, item) for _, item in waiting), reverse=True)
    for start, item in waiting:
        gone = 0
        while ends[-1][0] <= start:
            gone |= 1 << ends.pop()[1]
        states = _without(states, gone, load)
        for state, (value, nbytes, chosen) in list(states.items()):
            more = load.with_item(state, nbytes, item)
            if more <= capacity:
                states[state | 1 << item] = value + worth[item], more, (item, chosen)
        while len(states) > _STATES:
            alive = reduce(or_, states)
            least = min(_numbers(alive), key=lambda each: (items[each].size * (items[each].end - start), each))
            states = _without(states, 1 << least, load)
    value, _, chosen = max(states.values(), key=lambda found: found[0])
    found = set(free)
    while chosen is not None:
        item, chosen = chosen
        found.add(item)
    return MostValuable(value + sum(worth[each] for each in free), frozenset(found))


def _without(states: _States, gone: int, load: _Load) -> _States:
    """States that do not tell these items any more, each with the best of its values."""
    if not gone:
        return states
    found: _States = {}
    for state, (value, nbytes, chosen) in states.items():
        kept = state & ~gone
        if kept not in found or found[kept][0] < value:
            found[kept] = value, nbytes if kept == state else load.without(state, nbytes, gone), chosen
    return found


class _Load:
    """Bytes that items take at least together: of those with relations, a group counts as its two that need most."""

    def __init__(self, plan: PlanProblem) -> None:
        self._sizes = [item.size for item in plan.items]
        self._unions = _unions(plan)
        self._relatives = [0] * len(plan.items)
        for one, other in self._unions:
            self._relatives[one] |= 1 << other

    def with_item(self, state: int, nbytes: int, item: int) -> int:
        """Of a state of so many bytes, and one more item."""
        if not self._relatives[item] & state:
            return nbytes + self._sizes[item]
        group = self._group(state | 1 << item, item)
        return nbytes - self._of(group ^ 1 << item) + self._largest(group)

    def without(self, state: int, nbytes: int, gone: int) -> int:
        """Of a state of so many bytes, and fewer items."""
        for item in _numbers(state & gone):
            if self._relatives[item] & state:
                return self._of(state & ~gone)
            nbytes -= self._sizes[item]
        return nbytes

    def _of(self, state: int) -> int:
        total = 0
        while state:
            group = self._group(state, state.bit_length() - 1)
            total += self._largest(group)
            state ^= group
        return total

    def _group(self, state: int, item: int) -> int:
        """Those of the state that relations lead to from an item."""
        group = new = 1 << item
        while new:
            mates = reduce(or_, (self._relatives[each] for each in _numbers(new)))
            new = mates & state & ~group
            group |= new
        return group

    def _largest(self, group: int) -> int:
        most = 0
        for item in _numbers(group):
            most = max(most, self._sizes[item])
            for mate in _numbers(self._relatives[item] & group):
                most = max(most, self._unions[item, mate])
        return most


def _unions(plan: PlanProblem) -> dict[tuple[int, int], int]:
    """Bytes that two items with a relation take at least together, by both pairs of their numbers."""
    found: dict[tuple[int, int], int] = {}
    for relation in plan.relations:
        first, second = plan.items[relation.first].size, plan.items[relation.second].size
        distance = relation.distance if relation.exact else max(relation.distance, min(0, second - first))
        union = max(second, distance + first) - min(0, distance)
        for pair in ((relation.first, relation.second), (relation.second, relation.first)):
            found[pair] = min(union, found.get(pair, first + second))
    return found


def _numbers(state: int) -> Iterator[int]:
    while state:
        yield state.bit_length() - 1
        state ^= 1 << state.bit_length() - 1
