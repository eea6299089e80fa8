"""The best stripes under each of a grid of limits: what less memory costs in computation.

One search for the whole grid, from narrow limits to wide ones. What is predicted and planned for one limit serves all,
and the search within a limit starts from the best of the narrower ones: so a wider limit never needs more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from ..analysis.bounds import io_lower_bound
from ..graph.search_limit import SearchLimit
from ..ir.change import Changed, RewriteUse
from ..ir.copying import copy_model
from ..ir.model import Model
from ..ir.npu import has_npu
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import Cost, cost_in
from ..options import Options
from .in_order import StripeSearch
from .judge import Chosen, stripe
from .orders import promising_orders
from .search import standing_use, use_of
from .stop import EmergencyStop
from .upright import upright

EXTRA_MACS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Limits on the MACs that stripes add, as fractions of the model's; those of a search's own rounds are among them."""
_AS_IS = "as_is"


@dataclass(frozen=True)
class FrontLimit:
    """A limit of the grid: the most MACs, as a fraction of the model's, and whether stripes may be a loop."""

    extra_macs: float
    loops: bool


@dataclass(frozen=True)
class StripeRecipe:
    """Regions to run in stripes, after putting a model's operators into an order; the same for every equal model.

    ``is_upright``: with its sequences along rows, but for tensors of the names in ``kept``.
    """

    order: tuple[int, ...]
    is_upright: bool
    regions: Chosen
    uses: tuple[RewriteUse, ...]
    kept: tuple[str, ...] = ()

    @property
    def has_loops(self) -> bool:
        """Whether any region is a loop."""
        return any(region.form != "unrolled" for region in self.regions)

    def applied(self, model: Model) -> Changed:
        """A copy of the model in stripes. Raises InfeasibleError where it is not the model that was searched."""
        copied = _arranged(model, self.order, self.is_upright, self.kept)
        return Changed(stripe(copied, self.regions), self.uses, ())


def grid_of(options: Options) -> tuple[FrontLimit, ...]:
    """The limits that are looked at, narrow ones first: no other stripes than the options permit."""
    if not options.cascade:
        return ()
    macs = [each for each in EXTRA_MACS if each <= options.max_extra_macs]
    return tuple(FrontLimit(extra, loops) for loops, extra in product((False, True)[: 1 + options.loops], macs))


class FrontSearch:
    """The search for the stripes of one model under every limit of a grid.

    ``model`` stays as it is. ``options.time_limit``: seconds for each limit, on average; an emergency stop.
    """

    def __init__(self, model: Model, profile: KernelProfile, options: Options) -> None:
        placement = arrange(model, profile, options).placement
        self._options = options
        self._unstriped = cost_in(placement.memory, options)
        self._grid = () if has_npu(model) else grid_of(options)
        self._stop = EmergencyStop(options.time_limit * len(self._grid))
        self._kept = tuple(name for name, _ in options.pins)
        own = _arranged(model, placement.order, False, self._kept)
        self._searches: list[StripeSearch] = []
        self._forms = [(placement.order, False)]
        if self._unstriped.head > io_lower_bound(own):
            self._forms += [] if upright(own, self._kept) is None else [(placement.order, True)]
            others = self._other_orders(own, profile)
            self._forms += [(tuple(placement.order[step] for step in order), False) for order in others]
            for form in self._forms:
                arranged = _arranged(model, *form, self._kept)
                self._searches.append(StripeSearch(arranged, profile, options, self._stop, self._unstriped))

    @property
    def has_struck(self) -> bool:
        """Whether the clock has ended the search."""
        return self._stop.has_struck

    def run(self, progress: Callable[[str], None]) -> Iterator[tuple[FrontLimit, StripeRecipe]]:
        """The best of each limit, as a recipe; of equal ones the first."""
        best: dict[FrontLimit, tuple[int, Chosen]] = {}
        said = set()
        yield from self._standing()
        for number, limit in enumerate(self._grid if self._searches else ()):
            known = min((best[each] for each in _just_below(limit, best)), key=self._price, default=(0, ()))
            share = number / len(self._grid)
            progress(f"stripes for the smallest {self._options.objective}: {share:.0%} done, {self._so_far(known)}")
            for at, search in enumerate(self._searches):
                start = known[1] if at == known[0] else ()
                found = search.run_rounds(
                    search.rounds_within(limit.extra_macs, limit.loops), self._cost(known), start=start
                )
                known = min(known, (at, found), key=self._price)
            best[limit] = known
            if known[1] and known not in said:
                said.add(known)
                yield limit, self._recipe(*known)

    def _standing(self) -> Iterator[tuple[FrontLimit, StripeRecipe]]:
        """The model with its sequences along rows and no stripes: reshapes are left out."""
        for search, form in zip(self._searches, self._forms, strict=True):
            if form[1] and self._grid:
                yield self._grid[0], StripeRecipe(*form, (), (standing_use(search.model),), self._kept)

    def _other_orders(self, own: Model, profile: KernelProfile) -> list[tuple[int, ...]]:
        if self._options.scheduler == _AS_IS:
            return []
        limit = SearchLimit(self._options.time_limit, self._options.seed)
        return promising_orders(own, profile, limit, self._kept, self._options.jobs)

    def _cost(self, found: tuple[int, Chosen]) -> Cost:
        return self._searches[found[0]].judge.cost(found[1])

    def _price(self, found: tuple[int, Chosen]) -> tuple[int, ...]:
        return self._searches[found[0]].judge.price(self._cost(found))

    def _so_far(self, known: tuple[int, Chosen]) -> str:
        need = self._cost(known).need
        return f"best {need:,} bytes, {self._unstriped.need - need:,} less than without"

    def _recipe(self, at: int, chosen: Chosen) -> StripeRecipe:
        model = self._searches[at].model
        return StripeRecipe(*self._forms[at], chosen, tuple(use_of(model, each) for each in chosen), self._kept)


def _arranged(model: Model, order: tuple[int, ...], is_upright: bool, kept: tuple[str, ...]) -> Model:
    """A copy with its operators in this order, and with its sequences along rows where that is wanted."""
    copied = copy_model(model)
    copied.main.reorder(order)
    return (upright(copied, kept) if is_upright else None) or copied


def _just_below(limit: FrontLimit, among: dict[FrontLimit, tuple[int, Chosen]]) -> Iterator[FrontLimit]:
    """The narrower limits: no more MACs, and loops only where they are permitted."""
    return (each for each in among if each.extra_macs <= limit.extra_macs and each.loops <= limit.loops)
