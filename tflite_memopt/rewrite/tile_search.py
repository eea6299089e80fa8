"""Channels in tiles and stripes together: tiles are looked for once there are stripes, and change where stripes pay.

rewritten --stripes--> striped --its peak--> rewritten with tiles --stripes--> striped anew, if it costs less
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..graph.interrupted_search import InterruptedSearch
from ..ir.change import Changed
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.arrange import Arrangement, arrange, arrange_all
from ..memory.cost import Cost, cost_in, estimate_of
from ..memory.every_library import arranged_for_every_library
from ..memory.libraries import LibraryNeed
from ..memory.work import WorkLimit
from ..options import Options
from .after_stripes import Kept, Simplified, after_stripes, if_cheaper, simplified
from .stage import with_sites
from .table import AFTER_STRIPES
from .tiles import TILES, KnownTiles, find_tiles

_ROUNDS = 4
"""How often more channels are made in tiles, at most: each time tiles have moved the peak."""


@dataclass(frozen=True)
class _Striped:
    """A rewritten model, the same in stripes, how that is arranged, and what it costs."""

    rewritten: Changed
    cascaded: Changed
    arrangement: Arrangement
    cost: Cost


@dataclass(frozen=True)
class _Beside:
    """What the first group of rules that changes a model in stripes makes of it, arranged before it is asked for."""

    cascaded: Changed
    group: int
    made: Simplified
    arrangement: Arrangement


@dataclass(frozen=True)
class TilesFound:
    """What a search ended with. ``arrangement``: of the model in stripes; None where nothing was arranged."""

    rewritten: Changed
    cascaded: Changed
    arrangement: Arrangement | None = None


@dataclass(frozen=True)
class TileSearch:
    """``cascade`` searches for stripes that need less than a number of bytes.

    ``before``: what each library needs for the original, None if it runs wrongly. ``most_macs``: those that a model may
    have in the end; ``work``: the limit on its run time.
    """

    profile: KernelProfile
    cascade: Callable[[Model, int], Changed]
    options: Options
    before: Mapping[str, LibraryNeed] | None
    most_macs: int
    work: WorkLimit
    progress: Callable[[str], None]
    _known: KnownTiles = field(default_factory=KnownTiles, init=False)

    def run(self, rewritten: Changed, cascaded: Changed) -> TilesFound:
        """The same two, or both with channels in tiles where that lowers the cost of the model in stripes.

        Raises InterruptedSearch at Ctrl-C.
        """
        if not self.options.rewrite:
            return TilesFound(rewritten, cascaded)
        best, beside = self._first_arranged(rewritten, cascaded)
        try:
            for _ in range(_ROUNDS):
                found = self._with_more_tiles(best)
                if found is None:
                    break
                best = found
            best = self._with_fewer_operators(best, beside)
            # Searches below a need that is known say nothing of a bound: that of the stripes without tiles stays.
            return TilesFound(best.rewritten, replace(best.cascaded, least=cascaded.least), best.arrangement)
        except KeyboardInterrupt as stopped:
            raise InterruptedSearch(lambda: TilesFound(best.rewritten, best.cascaded)) from stopped

    def _first_arranged(self, rewritten: Changed, cascaded: Changed) -> tuple[_Striped, _Beside | None]:
        """The two, with the planner's word on the model in stripes.

        With several processes also on what the first rules for it make of it: mostly they are asked for next.
        """
        if self.options.jobs == 1:
            return self._arranged(rewritten, cascaded), None
        model = cascaded.model
        each = (
            (group, simplified(model, rules, self.options, self.most_macs, self.work))
            for group, rules in enumerate(AFTER_STRIPES)
        )
        group, made = next(((group, made) for group, made in each if made is not None), (0, None))
        if made is None:
            return self._arranged(rewritten, cascaded), None
        found, other = arrange_all([model, made.model], self.profile, self.options)
        return self._striped(rewritten, cascaded, found), _Beside(cascaded, group, made, other)

    def _arranged(self, rewritten: Changed, cascaded: Changed) -> _Striped:
        """The two, with the planner's word on the model in stripes."""
        return self._striped(rewritten, cascaded, arrange(cascaded.model, self.profile, self.options))

    def _striped(self, rewritten: Changed, cascaded: Changed, found: Arrangement) -> _Striped:
        return _Striped(rewritten, cascaded, found, cost_in(found.placement.memory, self.options))

    def _with_fewer_operators(self, best: _Striped, beside: _Beside | None) -> _Striped:
        """The model in stripes, with what the rules for it save, within the limits on computation."""
        groups = AFTER_STRIPES
        if beside is not None and beside.cascaded is best.cascaded:
            # The groups before it change nothing.
            groups = AFTER_STRIPES[beside.group + 1 :]
            best = self._better(best, if_cheaper(beside.made, beside.arrangement, best.cost, self.options))
        for rules in groups:
            limits = self.most_macs, self.work
            found = after_stripes(best.cascaded.model, best.cost, rules, self.profile, self.options, *limits)
            best = self._better(best, found)
        return best

    def _better(self, best: _Striped, found: Kept | None) -> _Striped:
        """With what rules have made of the model in stripes, where that makes no library need more."""
        if found is None:
            return best
        model, use, arrangement = found
        fitting = self._fitting(model, arrangement)
        if fitting is None:
            return best
        if fitting.placement is arrangement.placement:
            arrangement = fitting  # with what each library needs, which is asked for again
        cascaded = replace(best.cascaded, model=model, uses=(*best.cascaded.uses, use))
        return self._striped(best.rewritten, cascaded, arrangement)

    def _with_more_tiles(self, best: _Striped) -> _Striped | None:
        """Both with tiles at the peak of the model in stripes; None where it costs more, or a library needs more."""
        if self.options.meets_budget(best.cost.need) or self.options.decision is not None:
            return None
        self.progress("looking for channels to make in tiles")
        # Where the model peaks in stripes; and without, since tiles alone may need less than stripes do.
        for model in [best.cascaded.model, best.rewritten.model][: 2 if best.cascaded.uses else 1]:
            found = self._tiled_at_peak(best, model)
            if found is not None:
                return found
        return None

    def _tiled_at_peak(self, best: _Striped, model: Model) -> _Striped | None:
        """The rewritten model with tiles where ``model`` peaks, and that in stripes; None where it costs no less."""
        profile, options, rewritten = self.profile, self.options, best.rewritten
        for tiles in TILES:
            found = find_tiles(rewritten.model, model, profile, options, tiles, best.cost.need, self.work, self._known)
            least = found.cost if model is not rewritten.model else estimate_of(found.model, profile, options)
            if not found.sites or least.need >= best.cost.need:
                return None  # What is left around the tiles, or of all, needs as much as the model in stripes does now.
            cascaded = self.cascade(found.model, best.cost.need)
            other = self._arranged(rewritten, cascaded)
            if not other.cost < best.cost:
                return None
            if self._may_fit_every_library(other):
                # What one of several saves is not measured.
                saved = best.cost.need - other.cost.need if len(found.sites) == 1 else 0
                sites = [replace(site, saved_bytes=saved) for site in found.sites]
                return replace(other, rewritten=with_sites(replace(rewritten, model=found.model), sites))
        return None

    def _may_fit_every_library(self, found: _Striped) -> bool:
        """As it is, or with what the rules for a model in stripes save: they are applied in the end."""
        fitting = self._fitting(found.cascaded.model, found.arrangement)
        return fitting is not None or self._with_fewer_operators(found, None) is not found

    def _fitting(self, model: Model, found: Arrangement) -> Arrangement | None:
        """A place for all tensors that makes no library need more than ``before``, if there is one."""
        if self.before is None:
            return found
        return arranged_for_every_library(model, found, self.before, self.profile, self.options)
