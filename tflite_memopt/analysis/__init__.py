"""The meaning of a model's order for memory and arithmetic: lifetimes, working sets, loops, MACs."""

from __future__ import annotations

DOOR = ("lifetimes", "loops", "macs", "side_effects")
"""The modules that other folders import; the rest is private to this one."""
