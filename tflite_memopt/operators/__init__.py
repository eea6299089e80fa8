"""One table of operator kinds, which all that cuts or turns operators asks."""

from __future__ import annotations

DOOR = ("overrides", "rows", "table")
"""The modules that other folders import; the rest is private to this one."""
