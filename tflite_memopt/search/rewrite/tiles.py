"""Once there are stripes: channels in tiles where the model peaks then, and rules for tensors that are left whole.

    rewritten --stripes--> striped --its peak--> rewritten with tiles --stripes--> striped again, if it costs less

Tiles pay where a wide tensor binds that rows cannot cut. That is known once there are stripes: operators whose tiles
would do away with a tensor that is alive at the peak are candidates. The numbers of tiles are compared on the model
without stripes, by the peak around the candidates alone: elsewhere stripes change it. The planner decides.

The rules for tensors that are left whole come last. Before the stripes they would change which orders and which regions
result, for better or worse by more than they save.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ...kernels.faults import new_faults
from ...kernels.profile import KernelProfile
from ...kernels.since import runs_on
from ...memory.arrange import Arrangement, Cost, arrange, cost_at, cost_in, estimate_of, fitted
from ...memory.layout import memory_layout
from ...memory.problems import schedule_problem
from ...memory.reserve import LibraryNeed
from ...memory.work import WorkLimit
from ...model.analysis.macs import model_macs
from ...model.ir.change import Changed, Exactness, RewriteUse
from ...model.ir.copying import copy_model, drop_dead_tensors, share_constants
from ...model.ir.editor import label
from ...model.ir.model import Model, Operator
from ...options import SearchOptions
from ...solvers.graph.side_by_side import side_by_side
from ...solvers.schedule.methods import solve as solve_schedule
from ...solvers.schedule.problem import memory_graph
from .channels import reason_against_groups
from .engine import Driver, Rule
from .search import Site, SiteLimit, SiteUse, Start, TakenApart, is_one_way, search, take_apart
from .stage import AFTER_STRIPES, SPLITS, start_of, with_sites, within

TILES = ((2, 3, 4, 6, 8), (2, 3), (2,))
"""Numbers of tiles to compare, and fewer where the best do not pay: each operator of each tile takes some tail."""
_LEAST_AT_ONCE = 2000
"""Operators of all models that are made at once: with fewer, processes take longer than they save."""
_EFFORT = 6000
"""Operators of the models whose costs one search may ask for."""
_COPIED = 500_000
"""Operators of all copies in which tiles are tried one by one: of a longer model only the last candidates are."""
_EFFORT_OF_ORDER = 0.02
"""Part of its limit that the search for one order may use: equal tiles have very many orders that cost the same."""
_Operators = tuple[Operator, ...]
"""Those of a model, in its order."""


@dataclass(frozen=True)
class Striped:
    """A rewritten model, and the same in stripes. ``arrangement``: of that, None where nothing was arranged."""

    rewritten: Changed
    cascaded: Changed
    arrangement: Arrangement | None


@dataclass
class KnownTiles:
    """What searches under any options, which share equal rewritten models, have found.

    ``gone``: by a model's operators, a number of tiles, and how much values may change, the tensors that tiles of the
    operator at each position remove. ``found``: by the candidates' positions, the numbers of tiles that were compared,
    the need that was to be beaten, the operators around which it counts, and the options that a cost depends on.
    """

    gone: dict[tuple[_Operators, int, tuple[Exactness, ...]], dict[int, set[str]]] = field(default_factory=dict)
    found: dict[tuple[object, ...], TakenApart] = field(default_factory=dict)


@dataclass(frozen=True)
class TileSearch:
    """``cascade`` searches for stripes that need less than a number of bytes.

    ``before``: the need of each library for the original, None if it runs wrongly. ``most_macs``: those that a model
    may have in the end; ``work``: the limit on its run time.
    """

    profile: KernelProfile
    cascade: Callable[[Model, int], Changed]
    options: SearchOptions
    before: Mapping[str, LibraryNeed] | None
    most_macs: int
    work: WorkLimit
    progress: Callable[[str], None]
    known: KnownTiles = field(default_factory=KnownTiles)

    def run(self, rewritten: Changed, cascaded: Changed) -> Striped:
        """Return the same two, or both with channels in tiles where that lowers the cost of the model in stripes."""
        best = self._arranged(rewritten, cascaded)
        while (found := self._with_more_tiles(best)) is not None:  # which costs less: tiles have moved the peak
            best = found
        best = self._with_fewer_operators(best)
        # Searches below a need that is known say nothing of a bound: that of the stripes without tiles stays.
        known = replace(best.cascaded, least=cascaded.least, without_loops=cascaded.without_loops)
        return replace(best, cascaded=replace(known, next_best=cascaded.next_best))

    def _arranged(self, rewritten: Changed, cascaded: Changed) -> Striped:
        made = arrange(cascaded.model, self.profile, self.options, known=cascaded.offsets)
        return Striped(rewritten, cascaded, made)

    def _cost(self, striped: Striped) -> Cost:
        assert striped.arrangement is not None
        return cost_in(striped.arrangement.placement.memory, self.options)

    def _with_fewer_operators(self, best: Striped) -> Striped:
        """Apply the rules for a model in stripes where that makes no library need more."""
        for rules in AFTER_STRIPES:
            limits = self.most_macs, self.work
            found = simplified(best.cascaded.model, self._cost(best), rules, self.profile, self.options, *limits)
            if found is None:
                continue
            model, use, arrangement = found
            is_on_target = runs_on(model, self.options.build)
            if not is_on_target or new_faults(model, best.cascaded.model, self.profile):
                continue
            fitting = self._fitting(model, arrangement)
            if fitting is None:
                continue
            if fitting.placement is arrangement.placement:
                arrangement = fitting  # with the needs of all libraries, which are requested again
            cascaded = replace(best.cascaded, model=model, uses=(*best.cascaded.uses, use))
            best = Striped(best.rewritten, cascaded, arrangement)
        return best

    def _with_more_tiles(self, best: Striped) -> Striped | None:
        """Both with tiles at the peak of the model in stripes; None where it costs more, or a library needs more."""
        if self.options.meets_budget(self._cost(best).need) or self.options.decision is not None:
            return None
        self.progress("looking for channels to make in tiles")
        # Where the model peaks in stripes; and without, since tiles alone may need less than stripes do.
        for model in (best.cascaded.model, best.rewritten.model) if best.cascaded.uses else (best.rewritten.model,):
            found = self._tiled_at_peak(best, model)
            if found is not None:
                return found
        return None

    def _tiled_at_peak(self, best: Striped, model: Model) -> Striped | None:
        """The rewritten model with tiles where ``model`` peaks, and that in stripes; None where it costs no less."""
        rewritten, known = best.rewritten, self._cost(best)
        for tiles in TILES:
            found = self.find_tiles(rewritten.model, model, tiles, known.need)
            is_whole = model is rewritten.model
            least = estimate_of(found.model, self.profile, self.options) if is_whole else found.cost
            if not found.sites or least.need >= known.need:
                return None  # The rest, around the tiles or of all, needs as much as the model in stripes does now.
            other = self._made_of(rewritten, found.model, found.sites, known)
            if other is None:
                return None
            if self._may_fit_every_library(other):
                return (None if other.cascaded.uses else self._in_more_tiles(rewritten, found.sites, other)) or other
        return None

    def _in_more_tiles(self, rewritten: Changed, sites: Sequence[SiteUse], best: Striped) -> Striped | None:
        """Twice as many tiles of the same operators, where they need less in stripes; those of ``best`` are in none.

        Without stripes both may peak alike. The tiles of more channels may then be what stripes are held up by.
        """
        twice = frozenset(replace(use.site, tiles=2 * use.site.tiles) for use in sites if use.site.tiles)
        if len(twice) < len(sites) or max(site.tiles for site in twice) > max(TILES[0]):
            return None
        model, uses = take_apart(start_of(rewritten.model, SPLITS, self.options), twice)
        is_tiled = all(use.applied for use in uses) and self.work.is_kept_by(model)
        other = self._made_of(rewritten, model, uses, self._cost(best)) if is_tiled else None
        return other if other is not None and self._may_fit_every_library(other) else None

    def _made_of(self, rewritten: Changed, model: Model, sites: Sequence[SiteUse], known: Cost) -> Striped | None:
        """``model``, which has these sites of the rewritten one in tiles, in stripes; None where it costs no less."""
        other = self._arranged(rewritten, self.cascade(model, known.need))
        if not self._cost(other) < known:
            return None
        # The saving of one of several is not measured.
        saved = known.need - self._cost(other).need if len(sites) == 1 else 0
        uses = [replace(site, saved_bytes=saved) for site in sites]
        return replace(other, rewritten=with_sites(replace(rewritten, model=model), uses))

    def _may_fit_every_library(self, found: Striped) -> bool:
        """As it is, or with what the rules for a model in stripes save: they are applied in the end."""
        assert found.arrangement is not None
        fitting = self._fitting(found.cascaded.model, found.arrangement)
        return fitting is not None or self._with_fewer_operators(found) is not found

    def _fitting(self, model: Model, found: Arrangement) -> Arrangement | None:
        """Return a place for all tensors that makes no library need more than ``before``, if there is one."""
        return found if self.before is None else fitted(model, found, self.before, self.profile, self.options)

    def find_tiles(self, model: Model, striped: Model, tiles: tuple[int, ...], below: int) -> TakenApart:
        """``model`` with channels in tiles that do away with what is alive where ``striped``, made of it, peaks.

        ``tiles``: the numbers of tiles to compare, the smallest first. ``below``: a need in bytes that is to be beaten.
        No sites where nothing gains. Neither model is changed. The cost of the result is that around the candidates
        alone.
        """
        options = self.options
        start = replace(start_of(model, SPLITS, options), tiles=tiles)
        names, focus = self._candidates(start, _alive_at_peak(striped, self.profile, options))
        labels = {label(operator) for operator in model.main.operators}

        def cost(each: Model) -> Cost:
            return within(self.work, each, _cost_around(focus, labels, each, self.profile, options), below)

        asked = (
            tuple(start.allowed),
            options.objective,
            options.seed,
            *sorted(self.work.before.items()),
            self.work.extra,
        )
        key = tuple(model.main.operators), frozenset(names), focus, tiles, below, self.profile, *asked
        if key not in self.known.found:
            limit = SiteLimit(_EFFORT if names else 0, below, options.jobs)
            self.known.found[key] = search(replace(start, names=names), cost, limit)
        found = self.known.found[key]
        # Whoever asks may change the order of what it gets.
        return replace(found, model=copy_model(found.model)) if found.sites else found

    def _candidates(self, start: Start, peak: set[str]) -> tuple[Mapping[int, str], frozenset[str]]:
        """Return the operators whose tiles do away with a tensor of the peak: their names, by position.

        And the names of all operators that write or read what goes.
        """
        names: dict[int, str] = {}
        focus: set[str] = set()
        operators, above = start.model.main.operators, _above(start.model, peak)
        known = self.known.gone.setdefault((tuple(operators), start.tiles[0], tuple(start.allowed)), {})
        positions = [at for at, each in enumerate(operators) if each in above and _is_whole_fan_out(each)]
        positions = positions[-(_COPIED // max(1, len(operators))) :]
        new = [position for position in positions if position not in known]
        jobs = self.options.jobs if len(new) * len(operators) >= _LEAST_AT_ONCE else 1
        known |= zip(new, side_by_side(partial(_tensors_gone, start), new, jobs), strict=True)
        for position in positions:
            gone = known[position]
            if gone & peak:
                names[position] = label(operators[position])
                focus |= {label(each) for each in operators if label(each) in gone or _reads(each, gone)}
        return names, frozenset(focus)


def simplified(
    model: Model,
    cost: Cost,
    rules: Sequence[Rule],
    profile: KernelProfile,
    options: SearchOptions,
    most_macs: int,
    work: WorkLimit,
) -> tuple[Model, RewriteUse, Arrangement] | None:
    """Return a copy of a model in stripes with these rules applied, and how it is arranged.

    None where none applies, not within the limits, or it costs no less than ``cost``, that of the model.
    """
    made = copy_model(model)
    driver = Driver(made)
    for graph in made.graphs:  # the bodies of loops among them
        for operator in list(graph.operators):
            driver.apply_at(rules, graph, operator)
    if not driver.applied or model_macs(made) > most_macs or not work.is_kept_by(made):
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


def _is_whole_fan_out(operator: Operator) -> bool:
    """Tell whether it may be made in tiles: not what is a tile or another piece already."""
    return reason_against_groups(operator) is None and not operator.outputs[0].is_piece


def _tensors_gone(start: Start, position: int) -> set[str]:
    """The names of computed tensors that are no more when an operator's channels are in tiles, as far as rules go."""
    before = _computed(start.model)
    made, by_site = start.taken_apart((Site(position, False, start.tiles[0]),))
    gone = before - _computed(made)
    if is_one_way(by_site):
        return gone
    made, _ = start.taken_apart((Site(position, True, start.tiles[0]),))
    return gone | (before - _computed(made))


def _above(model: Model, names: Collection[str]) -> set[Operator]:
    """The operators that write these tensors, or what they are computed from: rules change what is below alone."""
    above: set[Operator] = set()
    new = [tensor.producer for tensor in model.main.tensors if tensor.name in names]
    while new:
        operator = new.pop()
        if operator is not None and operator not in above:
            above.add(operator)
            new += [tensor.producer for tensor in operator.present_inputs()]
    return above


def _computed(model: Model) -> set[str]:
    return {tensor.name for operator in model.main.operators for tensor in operator.outputs}


def _reads(operator: Operator, names: Collection[str]) -> bool:
    return any(tensor.name in names for tensor in operator.present_inputs())


def _alive_at_peak(model: Model, profile: KernelProfile, options: SearchOptions) -> set[str]:
    """Return the names of the tensors that are alive at a peak of the best order."""
    needs = _needs(model, profile, options)
    order = [model.main.operators.index(operator) for operator in needs]
    timeline = memory_layout(model, profile, order=order).timeline
    peaks = [timeline.spans[each].start for each, need in needs.items() if need == max(needs.values())]
    return {
        tensor.name for tensor, life in timeline.tensors.items() if any(life.start <= at < life.end for at in peaks)
    }


def _needs(model: Model, profile: KernelProfile, options: SearchOptions) -> dict[Operator, int]:
    """Compute the bytes that are alive at each operator, in the best order, which is that of the operators here."""
    problem = schedule_problem(model.main, memory_layout(model, profile))
    limit = options.search_limit(_EFFORT_OF_ORDER)
    order = solve_schedule(problem, limit=limit).order
    needs = memory_graph(problem).needs_along(order)
    return {model.main.operators[at]: need for at, need in zip(order, needs, strict=True)}


def _cost_around(
    focus: Collection[str], known: Collection[str], model: Model, profile: KernelProfile, options: SearchOptions
) -> Cost:
    """Return the cost if the operators of the focus, and those that are new, were all that there is to the peak."""
    needs = _needs(model, profile, options).items()
    peak = max((need for each, need in needs if label(each) in focus or label(each) not in known), default=0)
    return cost_at(peak, model, profile, options)
