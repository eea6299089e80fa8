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
from ...model.ir.model import Model
from ...options import SearchOptions
from ...solvers.graph.alignment import aligned
from .in_order import TARGETS
from .measure import Measured
from .select import Figures, Problem, choices
from .space import Space, modes_of
from .table import TilingTable
from .tiling import NAME_OF, Unrolled, has_loop

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


def drafts(
    model: Model,
    profile: KernelProfile,
    options: SearchOptions,
    measured: Measured,
    works: Sequence[int],
    making: int,
    apart: int | None,
) -> Iterator[Draft]:
    """Yield the draft of a model in its order within each of ``works``: added hundredths of an instruction, falling.

    ``options``: their limit on run time is the widest one. ``making``: what an operator adds that is not its own run.
    ``apart``: bytes that lie beside all that loops write, which is set to zero before they come; None: nothing is.
    """
    space = Space(model, profile, options, measured, modes_of(options))
    needs = space.tilings.needs
    bare = needs.whole(0, len(needs.of_steps))
    untiled = Draft(needs.base.least(Figures(bare, 0, 0, 0, 0, 0)), 0, 0, is_tiled=False, has_loop=False)
    space.bounds.fill(untiled.need)
    if apart is not None:
        _lie_apart(space.tilings, model, apart)
    least, found = space.sets.least(_FORMS), None
    for work in works:
        if found is None or found.work > work:
            found = _lowest(space, least, untiled.need, work, making) or untiled
            least = found.need  # within less work nothing needs less
        yield found


def _lowest(space: Space, least: int, below: int, work: int, making: int) -> Draft | None:
    """Return the draft of the set of the smallest bound within a limit on work; None where none is of use."""
    needs = space.tilings.needs
    limits, most = replace(needs.limits, work=min(work, needs.limits.work)), space.measurements.effort + _MEASURED
    for part in TARGETS:
        target = least + -(-(below - least) // part)
        while True:
            every = space.tilings.undominated(_FORMS)
            options = [option for _, option in every]
            found = choices(Problem(needs.of_steps, options, limits, needs.base, target, making=making))
            sets = [tuple(every[number][0] for number in each.options) for each in found[:_AT_ONCE]]
            if not found:
                break
            if space.tilings.is_measured(sets[0]) or space.measurements.effort >= most:
                figures = found[0].figures
                added = making * max(0, figures.operators)
                return Draft(found[0].least, figures.work, added, is_tiled=True, has_loop=has_loop(sets[0]))
            space.measurements.take(list(chain.from_iterable(sets)))
    return None


def _lie_apart(table: TilingTable, model: Model, nbytes: int) -> None:
    """Raise the bounds of loops: what they write lies beside so many bytes."""
    for region in table.regions:
        head = nbytes + sum(aligned(tensor.nbytes) for tensor in model.main.operators[region.end - 1].outputs)
        for tiling, known in list(region.known.items()):
            if not isinstance(tiling.form, Unrolled):
                figures = known.figures
                region.put(tiling, replace(known, figures=figures._replace(head=max(figures.head, head))))
