"""The model as integers and back: lifetimes and kernels become problems, solutions become offsets and figures."""

from __future__ import annotations

DOOR = ("arrange", "figures", "file", "layout", "problems", "reserve", "spread", "work")
"""The modules that other folders import; the rest is private to this one."""
