"""Few sets that hold everything that any of them holds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet


def few_that_cover(sets: Sequence[AbstractSet[Hashable]]) -> list[int]:
    """Positions of sets whose union is that of all, in their order, none of them needless.

    Greedy: the one that adds most comes next, the first of these. At most ``1 + ln m`` times as many as the fewest,
    where m is the size of the largest set (Chvatal, A greedy heuristic for the set-covering problem, 1979, theorem 1).
    """
    left: set[Hashable] = set().union(*sets)
    chosen: list[int] = []
    while left:
        best = max(range(len(sets)), key=lambda at: (len(sets[at] & left), -at))
        chosen.append(best)
        left -= sets[best]
    for at in list(chosen):
        others = set().union(*(sets[other] for other in chosen if other != at))
        if sets[at] <= others:
            chosen.remove(at)
    return sorted(chosen)
