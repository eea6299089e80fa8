"""Rules for what is left whole once there are stripes: group by group, each kept where the planner needs less.

Before the stripes they would change which orders and which regions are found, for better or worse by more than they
save.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.macs import model_macs
from ..ir.change import RewriteUse
from ..ir.copying import copy_model
from ..ir.dead_tensors import drop_dead_tensors
from ..ir.model import Model
from ..ir.share_constants import share_constants
from ..kernels.profile import KernelProfile
from ..memory.arrange import Arrangement, arrange
from ..memory.cost import Cost, cost_in
from ..memory.work import model_work
from ..options import Options
from .driver import Driver
from .rule import AnyRule
from .stage import pinned


def after_stripes(
    model: Model,
    cost: Cost,
    rules: Sequence[AnyRule],
    profile: KernelProfile,
    options: Options,
    most_macs: int,
    most_work: int,
) -> tuple[Model, RewriteUse, Arrangement] | None:
    """A copy of a model in stripes with these rules applied, and how it is arranged; None where it costs no less.

    ``cost``: what it costs as it is; ``most_macs``: the most multiply-accumulates that it may have; ``most_work``:
    instructions, as estimated.
    """
    made = copy_model(model)
    driver = Driver(made, pinned=pinned(options))
    for graph in made.graphs:  # the bodies of loops among them
        for operator in list(graph.operators):
            driver.apply_at(rules, graph, operator)
    if not driver.applied or model_macs(made) > most_macs or model_work(made, profile.prices) > most_work:
        return None
    drop_dead_tensors(made)
    share_constants(made)
    arrangement = arrange(made, profile, options)
    then = cost_in(arrangement.placement.memory, options)
    if not then < cost:
        return None
    names = " + ".join(dict.fromkeys(each.rule for each in driver.applied))
    operators = tuple(each.operator for each in driver.applied)
    return made, RewriteUse(names, operators, "exact", cost.need - then.need), arrangement
