"""Tools that schedulers, planners, and analyses share: alignment, intervals, dependencies, limits; integers only."""

DOOR = "alignment dependency_graph interval limits side_by_side"
"""The modules that other folders import; the rest is private to this one."""
