"""Relations help a greedy strategy or mislead it; so it runs without them, with them, and on rigid groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .bounds import max_breadth
from .groups import rigid_groups, singles
from .problem import Candidate, PlanProblem, RigidGroup, arena_bytes

Greedy = Callable[[PlanProblem, Sequence[RigidGroup]], tuple[int, ...]]
"""Places units one by one. It chooses their order, and must give every item an offset."""


def best_variant(problem: PlanProblem, greedy: Greedy) -> Candidate:
    """The smallest of the arenas; so a permission never makes a strategy worse than it is without."""
    best = greedy(problem.plain, singles(problem))
    if problem.relations:
        # A group that spans more than the best arena could only harm; the eighth is for alignments.
        bound = max_breadth(problem)
        grouped = rigid_groups(problem, bound + bound // 8)
        for offsets in (greedy(problem, singles(problem)), greedy(problem, grouped)):
            best = min(best, offsets, key=lambda found: arena_bytes(problem, found))
    return Candidate(best)
