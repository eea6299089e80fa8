"""All regions with one exit, in one mode, for many ways to cut: what each would need, as integers.

One sweep from the exit upwards gives rows, bytes and counts for every place where the region can start. No model is
copied or changed. The figures are those of the lowered region: of the model's own order, before anything is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.model import Operator, Tensor
from .counts import Additions, Counter
from .cut_table import CutTable, Flags, Integers
from .joins import join_needs
from .live import LiveBytes
from .lower import row_bytes
from .receptive_field import RowByRow
from .stripes import Edges, Halo
from .sweep import OperatorRows, Sweep
from .twins import Twins


@dataclass(frozen=True)
class Forecast:
    """The ways to cut a region that starts at operator ``first``.

    ``peak``: bytes alive, at most, of the region alone. ``exact``: whether a way can be done, and its figures are exact.
    """

    first: int
    peak: Integers
    exact: Flags
    additions: Additions


def forecasts(
    operators: Sequence[Operator],
    ways: Sequence[RowByRow],
    cuts: CutTable,
    mode: tuple[Halo, Edges],
    twins: Twins,
    lives_on: Collection[Tensor],
    goes_on: Callable[[Forecast], bool] = lambda _: True,
) -> Iterator[Forecast]:
    """The regions that end with the last of these operators and start with each, from the last one up.

    ``ways[i]`` is how operator i is run for some rows. ``lives_on``: tensors that are read after them or returned.
    """
    sweep, live, counter = Sweep(cuts, *mode), LiveBytes(cuts), Counter(cuts, twins)
    joined = join_needs(cuts, row_bytes(operators[-1].outputs[0]))
    for first in range(len(operators) - 1, -1, -1):
        rows = sweep.add(operators[first], ways[first])
        figures = _figures(rows, twins)
        held = live.add(rows, figures[3])
        counter.add(rows, held, figures[:3])
        peak, exact = live.peak(lives_on)
        found = Forecast(first, peak, exact & sweep.possible, counter.additions(live, joined))
        yield found
        if not goes_on(found):
            return


def _figures(rows: OperatorRows, twins: Twins) -> list[Integers]:
    """(params, buffers, requests, scratch) of the twin in each stripe."""
    read, computed = rows.read.count, rows.computed.count
    keys = ((read * 65536 + computed) * 256 + rows.above) * 256 + rows.below
    different, first, places = np.unique(keys, return_index=True, return_inverse=True)
    is_pad = rows.operator.name in ("PAD", "PADV2")
    found = []
    for at in first:
        padding = (int(rows.above[at]), int(rows.below[at]), rows.left, rows.right)
        given = padding if is_pad or rows.pads[at] or rows.is_valid else None
        found.append(twins.of(rows.operator, int(read[at]), int(computed[at]), given) if rows.has_job[at] else None)
    table = [(0, 0, 0, 0) if each is None else (each.params, each.buffers, each.requests, each.scratch) for each in found]
    return list(np.asarray(table, np.int64).T[:, places])
