"""Channels in tiles and stripes together: tiles are looked for once there are stripes, and change where stripes pay.

rewritten --stripes--> striped --its peak--> rewritten with tiles --stripes--> striped anew, if it costs less
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..analysis.macs import model_macs
from ..graph.interrupted_search import InterruptedSearch
from ..ir.change import Changed
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import Cost, cost_of, estimate_of
from ..memory.every_library import placement_for_every_library
from ..memory.libraries import LibraryNeed
from ..memory.work import model_work
from ..options import Options
from .after_stripes import after_stripes
from .stage import site_use
from .table import AFTER_STRIPES
from .tiles import TILES, find_tiles

_ROUNDS = 4
"""How often more channels are made in tiles, at most: each time tiles have moved the peak."""


@dataclass(frozen=True)
class TileSearch:
    """``cascade`` searches for stripes.

    ``before``: what each library needs for the original, None if it runs wrongly. ``most``: MACs and instructions (as
    estimated) that a model may have in the end, by those that it had when rewritten.
    """

    profile: KernelProfile
    cascade: Callable[[Model, KernelProfile, Options, Callable[[str], None]], Changed]
    options: Options
    before: Mapping[str, LibraryNeed] | None
    most: Callable[[int, int], tuple[int, int]]
    progress: Callable[[str], None]

    def run(self, rewritten: Changed, cascaded: Changed) -> tuple[Changed, Changed]:
        """The same two, or both with channels in tiles where that lowers the cost of the model in stripes.

        Raises InterruptedSearch at Ctrl-C.
        """
        best = rewritten, cascaded
        try:
            for _ in range(_ROUNDS if self.options.rewrite else 0):
                found = self._with_more_tiles(*best)
                if found is None:
                    break
                best = found
            return best[0], self._with_fewer_operators(*best)
        except KeyboardInterrupt as stopped:
            raise InterruptedSearch(lambda: best) from stopped

    def _with_fewer_operators(self, rewritten: Changed, cascaded: Changed) -> Changed:
        """The model in stripes, with what the rules for it save, within the limits on computation."""
        options, profile = self.options, self.profile
        if not options.rewrite:
            return cascaded
        most = self.most(model_macs(rewritten.model), model_work(rewritten.model, profile.prices))
        for rules in AFTER_STRIPES:
            found = after_stripes(cascaded.model, rules, profile, options, *most)
            if found is not None and self._fits_every_library(found[0]):
                cascaded = replace(cascaded, model=found[0], uses=(*cascaded.uses, found[1]))
        return cascaded

    def _with_more_tiles(self, rewritten: Changed, cascaded: Changed) -> tuple[Changed, Changed] | None:
        """Both with tiles at the peak of the model in stripes; None where it costs more, or a library needs more."""
        cost = cost_of(cascaded.model, self.profile, self.options, self.options.time_limit)
        if self.options.budget is not None and cost.need <= self.options.budget:
            return None
        self.progress("looking for channels to make in tiles")
        # Where the model peaks in stripes; and without, since tiles alone may need less than stripes do.
        for model in [cascaded.model, rewritten.model][: 2 if cascaded.uses else 1]:
            found = self._tiled_at_peak(rewritten, model, cost)
            if found is not None:
                return found
        return None

    def _tiled_at_peak(self, rewritten: Changed, model: Model, cost: Cost) -> tuple[Changed, Changed] | None:
        """The rewritten model with tiles where ``model`` peaks, and that in stripes; None where it costs no less."""
        profile, options = self.profile, self.options
        for tiles in TILES:
            found = find_tiles(rewritten.model, model, profile, options, tiles)
            least = found.cost if model is not rewritten.model else estimate_of(found.model, profile, options)
            if not found.sites or least.need >= cost.need:
                return None  # What is left around the tiles, or of all, needs as much as the model in stripes does now.
            other = self.cascade(found.model, profile, options, self.progress)
            then = cost_of(other.model, profile, options, options.time_limit)
            if not then < cost:
                return None
            if self._fits_every_library(other.model):
                # What one of several saves is not measured.
                saved = cost.need - then.need if len(found.sites) == 1 else 0
                uses = (replace(site_use(site), saved_bytes=saved) for site in found.sites)
                return replace(rewritten, model=found.model, uses=(*rewritten.uses, *uses)), other
        return None

    def _fits_every_library(self, model: Model) -> bool:
        """Whether there is a place for all tensors that makes no library need more than ``before``."""
        if self.before is None:
            return True
        found = arrange(model, self.profile, self.options)
        return placement_for_every_library(model, found, self.before, self.profile, self.options) is not None
