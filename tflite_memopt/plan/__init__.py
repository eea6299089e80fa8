"""Plan offsets over integers: a problem, strategies, an independent checker.

Other folders import ``problem`` (items, relations, plans), ``methods`` (``solve`` and the names of the strategies),
``bounds``, ``check``, ``memories``, and ``tflm_greedy`` of ``heuristics``, which predicts TFLM's own planner.
``exact`` with ``disjunctive`` is behind ``methods``.
"""
