"""What a model means for memory and arithmetic: lifetimes, working sets, loops, MACs, ranges, side effects."""

DOOR = "float_islands lifetimes loops macs ranges side_effects"
"""The modules that other folders import; the rest is private to this one."""
