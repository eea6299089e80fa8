"""Channels in tiles and stripes together: tiles are looked for once there are stripes, and change where stripes pay.

rewritten --stripes--> striped --its peak--> rewritten with tiles --stripes--> striped anew, if it costs less
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..analysis.macs import model_macs
from ..graph.interrupted_search import InterruptedSearch
from ..ir.change import Changed
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.arrange import Arrangement, arrange
from ..memory.cost import Cost, cost_in, estimate_of
from ..memory.every_library import placement_for_every_library
from ..memory.libraries import LibraryNeed
from ..memory.work import model_work
from ..options import Options
from .after_stripes import after_stripes
from .stage import site_use
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
class TilesFound:
    """What a search ended with. ``arrangement``: of the model in stripes; None where nothing was arranged."""

    rewritten: Changed
    cascaded: Changed
    arrangement: Arrangement | None = None


@dataclass(frozen=True)
class TileSearch:
    """``cascade`` searches for stripes.

    ``before``: what each library needs for the original, None if it runs wrongly. ``most``: MACs and instructions (as
    estimated) that a model may have in the end, by those that it had when rewritten.
    """

    profile: KernelProfile
    cascade: Callable[[Model, KernelProfile, Options, Callable[[str], None], int], Changed]
    options: Options
    before: Mapping[str, LibraryNeed] | None
    most: Callable[[int, int], tuple[int, int]]
    progress: Callable[[str], None]
    _known: KnownTiles = field(default_factory=KnownTiles, init=False)

    def run(self, rewritten: Changed, cascaded: Changed) -> TilesFound:
        """The same two, or both with channels in tiles where that lowers the cost of the model in stripes.

        Raises InterruptedSearch at Ctrl-C.
        """
        if not self.options.rewrite:
            return TilesFound(rewritten, cascaded)
        best = self._arranged(rewritten, cascaded)
        try:
            for _ in range(_ROUNDS):
                found = self._with_more_tiles(best)
                if found is None:
                    break
                best = found
            best = self._with_fewer_operators(best)
            return TilesFound(best.rewritten, best.cascaded, best.arrangement)
        except KeyboardInterrupt as stopped:
            raise InterruptedSearch(lambda: TilesFound(best.rewritten, best.cascaded)) from stopped

    def _arranged(self, rewritten: Changed, cascaded: Changed) -> _Striped:
        """The two, with the planner's word on the model in stripes."""
        found = arrange(cascaded.model, self.profile, self.options)
        return _Striped(rewritten, cascaded, found, cost_in(found.placement.memory, self.options))

    def _with_fewer_operators(self, best: _Striped) -> _Striped:
        """The model in stripes, with what the rules for it save, within the limits on computation."""
        options, profile = self.options, self.profile
        most = self.most(model_macs(best.rewritten.model), model_work(best.rewritten.model, profile.prices))
        for rules in AFTER_STRIPES:
            found = after_stripes(best.cascaded.model, best.cost, rules, profile, options, *most)
            if found is None:
                continue
            model, use, arrangement = found
            if self._fits_every_library(model, arrangement):
                cascaded = replace(best.cascaded, model=model, uses=(*best.cascaded.uses, use))
                best = _Striped(best.rewritten, cascaded, arrangement, cost_in(arrangement.placement.memory, options))
        return best

    def _with_more_tiles(self, best: _Striped) -> _Striped | None:
        """Both with tiles at the peak of the model in stripes; None where it costs more, or a library needs more."""
        if self.options.budget is not None and best.cost.need <= self.options.budget:
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
            found = find_tiles(rewritten.model, model, profile, options, tiles, best.cost.need, self._known)
            least = found.cost if model is not rewritten.model else estimate_of(found.model, profile, options)
            if not found.sites or least.need >= best.cost.need:
                return None  # What is left around the tiles, or of all, needs as much as the model in stripes does now.
            cascaded = self.cascade(found.model, profile, options, self.progress, best.cost.need)
            other = self._arranged(rewritten, cascaded)
            if not other.cost < best.cost:
                return None
            if self._fits_every_library(cascaded.model, other.arrangement):
                # What one of several saves is not measured.
                saved = best.cost.need - other.cost.need if len(found.sites) == 1 else 0
                uses = (replace(site_use(site), saved_bytes=saved) for site in found.sites)
                return replace(other, rewritten=replace(rewritten, model=found.model, uses=(*rewritten.uses, *uses)))
        return None

    def _fits_every_library(self, model: Model, found: Arrangement) -> bool:
        """Whether there is a place for all tensors that makes no library need more than ``before``."""
        if self.before is None:
            return True
        return placement_for_every_library(model, found, self.before, self.profile, self.options) is not None
