"""The table of operator kinds: rows, overrides in another shape, phases, sequences along H."""

from __future__ import annotations

DOOR = ("overrides", "rows", "table")
"""The modules that other folders import; the rest is private to this one."""
