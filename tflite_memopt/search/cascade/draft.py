"""What a model may need within limits on its run time, drafted: from measured tilings, without a plan or an order.

    within a limit    choose the tilings of the smallest bound; measure them; choose again
    until             all that are chosen are measured, or much is: the bound is the draft

Plans come to a few percent more. Tilings that are measured for one limit, or one model, are so for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ...kernels.profile import KernelProfile
from ...memory.figures import arena_terms
from ...model.ir.model import Model
from ...options import SearchOptions
from ...solvers.graph.alignment import aligned
from .in_order import TARGETS
from .measure import Measured
from .select import Figures, Option, Problem, choices, least_heads
from .space import Space, base_of, modes_of
from .tiling import NAME_OF, Tiling, Unrolled, has_loop

_FORMS = tuple(NAME_OF)
_AT_ONCE = 8
"""Sets whose tilings are measured together."""
_MEASURED = 2_000
"""Operators that may be measured within one limit. Of sets of many stripes, a draft may be a bound."""


@dataclass(frozen=True)
class Draft:
    """``need``: bytes of the objective. ``work``, and ``making`` of it: hundredths of an instruction that are added."""

    need: int
    work: int
    making: int
    is_tiled: bool
    has_loop: bool


class Drafts:
    """Drafts of a model, or of stretches of its steps if it ``is_cut``. The model stays as it is.

    The limit on run time of ``options`` is the widest one.
    """

    def __init__(
        self, model: Model, profile: KernelProfile, options: SearchOptions, measured: Measured, is_cut: bool = False
    ) -> None:
        self._model, self._profile, self._options = model, profile, options
        self._space = Space(model, profile, options, measured, modes_of(options), is_cut)
        needs = self._space.tilings.needs
        self._space.bounds.fill(needs.base.least(Figures(max(needs.of_steps), 0, 0, 0, 0, 0)))

    def of(
        self, first: int, end: int, part: Model, works: Sequence[int], making: int, apart: int | None
    ) -> Iterator[Draft]:
        """Yield the draft of steps ``first`` to ``end`` within each of ``works``: added hundredths of an instruction,
        falling.

        ``part``: these steps as a model. ``making``: what an operator adds that is not its own run. ``apart``: bytes
        that lie beside all that loops write, which is set to zero before they come; None: nothing is.
        """
        needs = self._space.tilings.needs
        base = base_of(arena_terms(part, self._profile), self._options)
        untiled = base.least(Figures(needs.whole(first, end), 0, 0, 0, 0, 0))
        asked = Problem(needs.of_steps[first:end], (), needs.limits, base, untiled, making=making)
        least, found = 0, None
        for work in works:
            if found is None or found.work > work:
                asked = replace(asked, limits=replace(needs.limits, work=min(work, needs.limits.work)))
                found = self._lowest(asked, first, apart, least) or Draft(untiled, 0, 0, False, False)
                least = found.need  # within less work nothing needs less
            yield found

    def _lowest(self, asked: Problem, first: int, apart: int | None, least: int) -> Draft | None:
        """Return the draft of the set of the smallest bound; None where none is of use."""
        space, most = self._space, self._space.measurements.effort + _MEASURED
        every = self._within(first, first + len(asked.needs), apart)
        heads = least_heads(asked.needs, [option for _, option in every])
        least = max(least, asked.base.least(Figures(heads[0], 0, 0, 0, 0, 0)))
        for part in TARGETS:
            target = least + -(-(asked.below - least) // part)
            while True:
                found = choices(replace(asked, options=[option for _, option in every], below=target))
                sets = [tuple(every[number][0] for number in each.options) for each in found[:_AT_ONCE]]
                if not found:
                    break
                if space.tilings.is_measured(sets[0]) or space.measurements.effort >= most:
                    figures = found[0].figures
                    added = asked.making * max(0, figures.operators)
                    return Draft(found[0].least, figures.work, added, is_tiled=True, has_loop=has_loop(sets[0]))
                space.measurements.take(list(chain.from_iterable(sets)))
                every = self._within(first, first + len(asked.needs), apart)
        return None

    def _within(self, first: int, end: int, apart: int | None) -> list[tuple[Tiling, Option]]:
        """The tilings of these steps, counted from the first one; of loops what they write lies ``apart``."""
        return [
            (tiling, Option(tiling.first - first, tiling.end - first, self._lying(tiling, option.figures, apart)))
            for region in self._space.tilings.regions
            if first <= region.first and region.end <= end
            for tiling, option in region.undominated(self._space.tilings.needs.floor, _FORMS)
        ]

    def _lying(self, tiling: Tiling, figures: Figures, apart: int | None) -> Figures:
        if apart is None or isinstance(tiling.form, Unrolled):
            return figures
        written = sum(aligned(tensor.nbytes) for tensor in self._model.main.operators[tiling.end - 1].outputs)
        return figures._replace(head=max(figures.head, apart + written))
