"""Changes to the graph that keep what it computes."""

from __future__ import annotations

DOOR = ("in_one_row", "loadable", "one_step", "sequences_along_h", "stage", "tiles")
"""The modules that other folders import; the rest is private to this one."""
