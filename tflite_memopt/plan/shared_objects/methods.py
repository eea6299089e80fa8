"""The table of shared-object strategies, and the one way to run them: solve, check, wrap, export."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ...errors import UsageError
from ...graph.clock import now
from .bounds import positional_maxima
from .check import check_objects
from .greedy import greedy
from .greedy_by_breadth import greedy_by_breadth
from .greedy_by_size import greedy_by_size
from .greedy_by_size_improved import greedy_by_size_improved
from .min_cost_flow import MOST_ITEMS, min_cost_flow
from .problem import Assignment, Items, ObjectStrategy, object_sizes

STRATEGIES: Mapping[str, ObjectStrategy] = {
    "greedy": greedy,
    "greedy_by_breadth": greedy_by_breadth,
    "greedy_by_size": greedy_by_size,
    "greedy_by_size_improved": greedy_by_size_improved,
    "min_cost_flow": min_cost_flow,
}
BEST = "best"
"""The two strategies that the paper's section 7 recommends; the better result is taken."""
BEST_OF = ("greedy_by_size_improved", "greedy_by_breadth")
NAMES = (BEST, *STRATEGIES)


def solve(items: Items, method: str = BEST) -> Assignment:
    """Assign objects by a named strategy; the result is checked. Raises UsageError for an unknown name.

    The result's ``method`` says so where min_cost_flow left the items to greedy.
    """
    if method == BEST:
        return min((solve(items, name) for name in BEST_OF), key=lambda found: found.total_bytes)
    if method not in STRATEGIES:
        raise UsageError(f"unknown shared-object planner '{method}'; choose one of {', '.join(NAMES)}")
    started = now()
    objects = STRATEGIES[method](items)
    seconds = now() - started
    check_objects(items, objects)
    sizes, bound = object_sizes(items, objects), sum(positional_maxima(items))
    return Assignment(objects, sizes, sum(sizes), bound, sum(sizes) == bound, _as_run(method, items), seconds)


def _as_run(method: str, items: Items) -> str:
    """The name of a strategy, and what ran in its place."""
    if method == "min_cost_flow" and len(items) > MOST_ITEMS:
        return f"{method} (as greedy: more than {MOST_ITEMS:,} items)"
    return method


def to_json(assignment: Assignment) -> str:
    """The assignment as JSON, for a runtime that binds tensors to objects; bytes throughout."""
    return json.dumps(
        {
            "method": assignment.method,
            "total_bytes": assignment.total_bytes,
            "lower_bound": assignment.lower_bound,
            "optimal": assignment.optimal,
            "object_bytes": list(assignment.sizes),
            "object_of_item": list(assignment.objects),
        },
        indent=2,
    )
