"""Order operators over integers: a problem, methods, an independent checker."""

from __future__ import annotations

DOOR = "check contracted_orders methods problem"
"""The modules that other folders import; the rest is private to this one."""
