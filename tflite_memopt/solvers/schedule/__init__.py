"""Order operators over integers: a problem, methods, an independent checker."""

DOOR = "check contracted_orders methods problem"
"""The modules that other folders import; the rest is private to this one."""
