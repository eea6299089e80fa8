"""All regions with one exit, in one mode, for many ways to cut: what each would need, as integers.

One sweep from the exit upwards gives rows, bytes and counts for every place where the region can start. No model is
copied or changed. The figures are those of the lowered region: of the model's own order, before anything is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ..ir.model import Operator, Tensor
from ..operators.rows import RowByRow
from .counts import Additions, Counter
from .cut_table import CutTable, Flags, Integers
from .joins import join_needs
from .live import LiveBytes
from .lower import row_bytes
from .stripes import Edges, Halo
from .sweep import Sweep
from .twins import Twins


@dataclass(frozen=True)
class Forecast:
    """The ways to cut a region that starts at operator ``first``.

    ``peak``: the largest working set of the region alone, as the scheduler counts; ``bound``: what no plan for this
    order goes below; both in bytes. ``exact``: whether a way can be done, and its figures are exact.
    ``macs``: those added. ``additions``: what each adds; to be asked for before the next forecast is.
    """

    first: int
    peak: Integers
    bound: Integers
    exact: Flags
    macs: Integers
    additions: Callable[[], Additions]


def forecasts(
    operators: Sequence[Operator],
    ways: Sequence[RowByRow],
    cuts: CutTable,
    mode: tuple[Halo, Edges],
    twins: Twins,
    lives_on: Collection[Tensor],
    goes_on: Callable[[Forecast], bool] = lambda _: True,
    starts_at: Callable[[int], bool] = lambda _: True,
) -> Iterator[Forecast]:
    """The regions that end with the last of these operators and start with each, from the last one up.

    ``ways[i]`` is how operator i is run for some rows. ``lives_on``: tensors that are read after them or returned.
    ``starts_at``: whether a region that starts with such an operator is wanted.
    """
    joined = join_needs(cuts, row_bytes(operators[-1].outputs[0]))
    sweep, live, counter = Sweep(cuts, *mode), LiveBytes(cuts, joined, twins, lives_on), Counter(cuts, twins)
    for first in range(len(operators) - 1, -1, -1):
        rows = sweep.add(operators[first], ways[first])
        figures = twins.columns(rows)
        counter.add(rows, live.add(rows, figures), figures)
        if not live.is_whole or not starts_at(first):
            continue
        peak, bound, exact = live.peak()
        found = Forecast(first, peak, bound, exact & sweep.possible, counter.macs, partial(counter.additions, live))
        yield found
        if not goes_on(found):
            return
