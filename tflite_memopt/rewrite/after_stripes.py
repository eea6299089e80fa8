"""Rules for what is left whole once there are stripes: group by group, each kept where the planner needs less.

Before the stripes they would change which orders and which regions are found, for better or worse by more than they
save.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..analysis.macs import model_macs
from ..ir.change import RewriteUse
from ..ir.copying import copy_model
from ..ir.dead_tensors import drop_dead_tensors
from ..ir.model import Model
from ..ir.share_constants import share_constants
from ..kernels.profile import KernelProfile
from ..memory.arrange import Arrangement, arrange
from ..memory.cost import Cost, cost_in
from ..memory.work import WorkLimit
from ..options import Options
from .driver import Driver
from .rule import AnyRule
from .stage import pinned


@dataclass(frozen=True)
class Simplified:
    """A copy of a model in stripes to which rules were applied: their names, and those of the operators."""

    model: Model
    rules: str
    operators: tuple[str, ...]


Kept = tuple[Model, RewriteUse, Arrangement]


def after_stripes(
    model: Model,
    cost: Cost,
    rules: Sequence[AnyRule],
    profile: KernelProfile,
    options: Options,
    most_macs: int,
    work: WorkLimit,
) -> Kept | None:
    """A copy of a model in stripes with these rules applied, and how it is arranged; None where it costs no less.

    ``cost``: what it costs as it is; ``most_macs``, ``work``: as for ``simplified``.
    """
    made = simplified(model, rules, options, most_macs, work)
    return None if made is None else if_cheaper(made, arrange(made.model, profile, options), cost, options)


def simplified(
    model: Model, rules: Sequence[AnyRule], options: Options, most_macs: int, work: WorkLimit
) -> Simplified | None:
    """A copy of a model in stripes with these rules applied; None where none applies, or not within the limits.

    ``most_macs``: the most multiply-accumulates that it may have; ``work``: the limit on its run time.
    """
    made = copy_model(model)
    driver = Driver(made, pinned=pinned(options))
    for graph in made.graphs:  # the bodies of loops among them
        for operator in list(graph.operators):
            driver.apply_at(rules, graph, operator)
    if not driver.applied or model_macs(made) > most_macs or not work.is_kept_by(made):
        return None
    drop_dead_tensors(made)
    share_constants(made)
    names = " + ".join(dict.fromkeys(each.rule for each in driver.applied))
    return Simplified(made, names, tuple(each.operator for each in driver.applied))


def if_cheaper(made: Simplified, arrangement: Arrangement, cost: Cost, options: Options) -> Kept | None:
    """What was made, as it is arranged; None where it costs no less than the model that it was made of."""
    then = cost_in(arrangement.placement.memory, options)
    if not then < cost:
        return None
    return made.model, RewriteUse(made.rules, made.operators, "exact", cost.need - then.need), arrangement
