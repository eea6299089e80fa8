"""Plan offsets over integers: a problem, strategies, an independent checker.

``methods`` has ``solve`` and the names of the strategies; ``heuristics`` also predicts TFLM's own planner.
"""

DOOR = "bounds check heuristics memories methods problem together"
"""The modules that other folders import; the rest is private to this one."""
