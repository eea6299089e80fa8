"""One table of operator kinds: how each is cut, what it may overwrite, and what TFLM takes."""

from __future__ import annotations

DOOR = ("overrides", "rows", "table")
"""The modules that other folders import; the rest is private to this one."""
