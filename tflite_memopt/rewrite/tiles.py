"""Channels in tiles, where stripes have done what they can: what is tiled, and into how many tiles.

Tiles pay where a wide tensor binds that rows cannot cut. That is known once there are stripes, so this looks at the
model in stripes: operators whose tiles would do away with a tensor that is alive at its peak are candidates. The
numbers of tiles are compared on the model without stripes, by the peak around the candidates alone: elsewhere stripes
change it. Whoever asked cuts the result into stripes anew, and lets the planner decide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ..analysis.macs import model_macs
from ..graph.side_by_side import side_by_side
from ..ir.copying import copy_model
from ..ir.model import Model, Operator
from ..ir.names import label
from ..kernels.arena import arena_use
from ..kernels.profile import KernelProfile
from ..memory.cost import Cost
from ..memory.layout import memory_layout
from ..memory.schedule_problem import schedule_problem
from ..memory.usage import operator_count
from ..memory.work import WorkLimit
from ..options import Options
from ..schedule.memory_graph import memory_graph
from ..schedule.methods import solve as solve_schedule
from .fan_out import fan_out
from .search import Site, SiteLimit, Start, TakenApart, is_one_way, search_tiles
from .stage import allowed, pinned, within
from .table import SPLITS

TILES = ((2, 3, 4, 6, 8), (2, 3), (2,))
"""Numbers of tiles to compare, and fewer where the best do not pay: each operator of each tile takes some tail."""
_LEAST_WORK = 2000
"""Operators of all models that are made at once: with fewer, processes take longer than they save."""
_WORK = 6000
"""Operators of the models whose costs one search may ask for."""
_ORDER_WORK = 0.02
"""Part of its limit that the search for one order may use: equal tiles have very many orders that cost the same."""


_Operators = tuple[Operator, ...]
"""Those of a model, in its order."""


@dataclass(frozen=True)
class KnownTiles:
    """What searches with the same options have found, so that none of it is worked out again.

    ``gone``: for operators that may be in so many tiles, in order, the tensors that are no more then. ``found``: by
    the candidates' positions, the numbers of tiles that were compared, and the need that was to be beaten.
    """

    gone: dict[tuple[_Operators, int], list[set[str]]] = field(default_factory=dict)
    found: dict[tuple[_Operators, frozenset[int], tuple[int, ...], int], TakenApart] = field(default_factory=dict)


def find_tiles(
    model: Model,
    striped: Model,
    profile: KernelProfile,
    options: Options,
    tiles: tuple[int, ...],
    below: int,
    work: WorkLimit,
    known: KnownTiles,
) -> TakenApart:
    """``model`` with channels in tiles that do away with what is alive where ``striped``, made of it, peaks.

    ``tiles``: the numbers of tiles to compare, the smallest first. ``below``: a need in bytes that is to be beaten.
    ``work``: the limit on run time. No sites where nothing gains. Neither model is changed. The cost of the result is
    that around the candidates alone. Raises InterruptedSearch at Ctrl-C.
    """
    start = Start(model, SPLITS, allowed(options), pinned(options), {}, tiles)
    names, focus = _candidates(start, _alive_at_peak(striped, profile, options), options.jobs, known)
    key = tuple(model.main.operators), frozenset(names), tiles, below

    labels = {label(operator) for operator in model.main.operators}

    def cost(each: Model) -> Cost:
        return within(work, each, _cost_around(focus, labels, each, profile, options), below)

    if key not in known.found:
        limit = SiteLimit(_WORK if names else 0, options.seconds_left, below, options.jobs)
        known.found[key] = search_tiles(replace(start, names=names), cost, limit)
    found = known.found[key]
    # Whoever asks may change the order of what it gets.
    return replace(found, model=copy_model(found.model)) if found.sites else found


def _candidates(
    start: Start, peak: Collection[str], jobs: int, known: KnownTiles
) -> tuple[Mapping[int, str], frozenset[str]]:
    """Operators whose tiles do away with a tensor of the peak: their names, by position.

    And the names of all operators that write or read what goes.
    """
    names: dict[int, str] = {}
    focus: set[str] = set()
    operators = start.model.main.operators
    positions = [position for position, operator in enumerate(operators) if _is_whole_fan_out(operator)]
    key = tuple(operators), start.tiles[0]
    if key not in known.gone:
        is_much = len(positions) * len(operators) >= _LEAST_WORK
        known.gone[key] = side_by_side(partial(_gone, start), positions, jobs if is_much else 1)
    for position, gone in zip(positions, known.gone[key], strict=True):
        if gone & set(peak):
            names[position] = label(operators[position])
            focus |= {label(each) for each in operators if label(each) in gone or _reads(each, gone)}
    return names, frozenset(focus)


def _is_whole_fan_out(operator: Operator) -> bool:
    """Whether it may be made in tiles: not what is a tile or another piece already."""
    return not isinstance(fan_out(operator), str) and operator.outputs[0].origin is None


def _gone(start: Start, position: int) -> set[str]:
    """The names of computed tensors that are no more when an operator's channels are in tiles, as far as rules go."""
    before = _computed(start.model)
    made, by_site = start.taken_apart((Site(position, False, start.tiles[0]),))
    gone = before - _computed(made)
    if is_one_way(by_site):
        return gone
    made, _ = start.taken_apart((Site(position, True, start.tiles[0]),))
    return gone | (before - _computed(made))


def _computed(model: Model) -> set[str]:
    return {tensor.name for operator in model.main.operators for tensor in operator.outputs}


def _reads(operator: Operator, names: Collection[str]) -> bool:
    return any(tensor.name in names for tensor in operator.present_inputs())


def _alive_at_peak(model: Model, profile: KernelProfile, options: Options) -> set[str]:
    """The names of the tensors that are alive at a peak of the best order."""
    needs = _needs(model, profile, options)
    order = [model.main.operators.index(operator) for operator in needs]
    timeline = memory_layout(model, profile, order=order).timeline
    peaks = [timeline.spans[each].start for each, need in needs.items() if need == max(needs.values())]
    return {
        tensor.name for tensor, life in timeline.tensors.items() if any(life.start <= at < life.end for at in peaks)
    }


def _needs(model: Model, profile: KernelProfile, options: Options) -> dict[Operator, int]:
    """What is alive at each operator, in bytes, in the best order, which is that of the operators here."""
    problem = schedule_problem(model.main, memory_layout(model, profile))
    limit = options.search_limit(_ORDER_WORK)
    order = solve_schedule(problem, options.scheduler, limit).order
    needs = memory_graph(problem).needs_along(order)
    return {model.main.operators[at]: need for at, need in zip(order, needs, strict=True)}


def _cost_around(
    focus: Collection[str], known: Collection[str], model: Model, profile: KernelProfile, options: Options
) -> Cost:
    """The cost if the operators of the focus, and those that are new, were all that there is to the peak."""
    needs = _needs(model, profile, options).items()
    peak = max((need for each, need in needs if label(each) in focus or label(each) not in known), default=0)
    need = arena_use(model, peak, profile.requests, profile.abi).required if options.objective == "total" else peak
    return Cost(need, peak, model_macs(model), operator_count(model))
