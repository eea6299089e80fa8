"""Run a region stripe by stripe: rows, writers, bounds, measures, selection, and the search.

``search`` is the stage, ``draft`` what it would find. ``measure`` keeps the measurements of earlier searches;
``region``, ``loop`` and ``loop_rows`` are for ``program/``, whose fed fronts are loops, too; ``slide`` is for
``stepping``.
"""

DOOR = "draft loop loop_rows measure region search slide"
"""The modules that other folders import; the rest is private to this one."""
