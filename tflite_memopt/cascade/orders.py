"""Orders of a model in which more regions are intervals: see ``schedule/contracted_orders.py``."""

from __future__ import annotations

from collections.abc import Collection

from ..graph.search_limit import SearchLimit
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.layout import memory_layout
from ..memory.schedule_problem import schedule_problem
from ..operators.table import row_by_row
from ..schedule.contracted_orders import Repeatable, contracted_orders
from .region import regions_above

_LONGEST = 24


def promising_orders(
    model: Model, profile: KernelProfile, limit: SearchLimit, pinned: Collection[str] = (), jobs: int = 1
) -> list[tuple[int, ...]]:
    """Orders with one or more regions in a row that may have a smaller peak than the model's own, best ones first.

    ``jobs``: processes that try regions out side by side.
    """
    problem = schedule_problem(model.main, memory_layout(model, profile))
    return contracted_orders(problem, _regions(model, pinned), limit, jobs)


def _regions(model: Model, pinned: Collection[str]) -> list[Repeatable]:
    """All regions, small ones first."""
    operators = model.main.operators
    ways = [row_by_row(operator) for operator in operators]
    kinds = [(operator.name, *(output.shape for output in operator.outputs)) for operator in operators]
    found: list[tuple[int, ...]] = []
    for exit_, operator in enumerate(operators):
        shape = operator.outputs[0].shape if operator.outputs else ()
        if len(shape) == 4 and shape[1] > 1:
            found += regions_above(model.main, exit_, ways, _LONGEST, pinned)
    several = sorted((region for region in found if len(region) > 1), key=lambda region: (len(region), region))
    return [Repeatable(region, tuple(kinds[step] for step in region)) for region in several]
