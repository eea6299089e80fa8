"""Whether a group of items fits, asked at one capacity after the other: from the bound up, from the best plan down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...graph.search_limit import WorkAllowance
from .run import CapacitySearch, SearchRun
from .tree import LIMIT, NONE

Steps = tuple[tuple[int, int], ...]
"""(part, share): a question below the best plan by one such part of what lies between it and the bound, and the share
of the nodes that it gets."""
STEPS: Steps = ((2, 1), (4, 1), (8, 2), (16, 4), (32, 8))
"""Half way, then nearer to the plan. The nearest get fewer nodes, so that the far ones are not kept waiting."""


@dataclass
class BestOfGroup:
    """The bytes that one group takes at best, and the proved bound; ``found``: ever better offsets, best last."""

    top: int
    bound: int
    found: list[tuple[int, ...]] = field(default_factory=list)


@dataclass
class CapacityQuestions:
    """Whether a group fits into so many bytes, asked at one capacity after the other; ``visited`` counts nodes."""

    search: CapacitySearch
    best: BestOfGroup
    allowance: WorkAllowance
    visited: int = 0

    def is_open(self) -> bool:
        """Whether the best plan is above the bound, and something may still be spent on it."""
        return self.best.top > self.best.bound and not self.allowance.is_spent()

    def raise_bound(self, rules: Sequence[str], nodes: int) -> None:
        """Ask at the bound; where the answer is no, right below the best plan, and then ever further above the bound.

        Where the best plan is the smallest, one answer below it stands for all the others. And a bound that is far too
        low does not creep up by a few bytes a time.
        """
        best, grain = self.best, self.search.group.grain
        if not self.is_open() or self._ask(best.bound, rules, nodes) != NONE:
            return
        if self.search.refutes_at_once and self.is_open():
            self._ask(max(best.bound, (best.top - 1) // grain * grain), rules, nodes)
        step = grain
        while self.is_open():
            capacity = best.bound + min(step, (best.top - best.bound - 1) // 2 // grain * grain)
            if self._ask(capacity, rules, nodes) != NONE:
                break
            step *= 2

    def find_bound(self) -> None:
        """Raise the bound to the smallest capacity that a single node does not refute: by bisection."""
        best, grain = self.best, self.search.group.grain
        high = best.top
        while best.bound < high and self.is_open():
            capacity = max(best.bound, (best.bound + high - 1) // 2 // grain * grain)
            if self._ask(capacity, self.search.rules[:1], 1) != NONE:
                high = min(capacity, best.top)

    def lower_top(self, rules: Sequence[str], nodes: int, steps: Steps = STEPS) -> None:
        """Ask half way between the bound and the best plan, as long as there is an answer; then nearer to the plan.

        A plan may be easy to find a little below the best one where half the way is too far. A question always gets
        enough nodes to place every item once.
        """
        best, grain = self.best, self.search.group.grain
        fewest = self.search.first_nodes
        for part, share in steps:
            end = NONE
            while end != LIMIT and self.is_open():
                capacity = (best.top - 1 - (best.top - 1 - best.bound) // part) // grain * grain
                if capacity <= best.bound:
                    return
                end = self._ask(capacity, rules, max(fewest, nodes // share))

    def _ask(self, capacity: int, rules: Sequence[str], nodes: int) -> int:
        """Every rule in turn, until one has an answer; how the last one ended."""
        end = LIMIT
        for rule in rules:
            if end != LIMIT or self.allowance.is_spent():
                break
            found = self.search.run(capacity, rule, nodes, self.allowance)
            self.visited += found.nodes
            self._learn(capacity, found)
            end = found.end
        return end

    def _learn(self, capacity: int, found: SearchRun) -> None:
        """Take over a plan or a proof."""
        group = self.search.group
        if found.offsets:
            self.best.found.append(found.offsets)
            self.best.top = max(offset + item.size for offset, item in zip(found.offsets, group.items, strict=True))
        elif found.is_proof:
            # All arenas are multiples of the grain.
            self.best.bound = capacity - capacity % group.grain + group.grain
