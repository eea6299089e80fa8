"""Peeled loops: which rows every iteration reads and writes. Integers only, no graph is touched.

    first stripe | iteration | iteration | iteration | last stripe

Interior stripes are alike but for the rows at which they start; what differs at the edges of the image is before and
after the loop. Both ways to treat the halo work: rows that a stripe keeps for the next one are carried along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ...ir.model import Tensor
from ...operators.rows import Rows
from ...operators.table import kind_of
from ..region import Region
from ..stripes import Edges, Halo, Stripe, input_reads, stripes_of


@dataclass(frozen=True)
class Peeled:
    """A region as a loop whose iterations write ``rows`` rows of the exit each.

    ``turn`` is what an iteration does, at the rows of the first one. ``reads[x, rows][t]``: the row of input x from
    which iteration t reads in place of ``rows``, which the first one reads. ``writes[t]``: the first row of the exit
    that iteration t writes. ``first`` and ``last``: the stripes before and after the loop; None where there is none.
    ``kept_after[k]``: the rows of k that are kept when the loop has ended. ``steps[k]``: how many rows further tensor k
    is in the next iteration.
    """

    rows: int
    turn: Stripe
    reads: Mapping[tuple[Tensor, Rows], tuple[int, ...]]
    writes: tuple[int, ...]
    first: Stripe | None
    last: Stripe | None
    kept_after: Mapping[Tensor, Rows]
    steps: Mapping[Tensor, int]
    first_turn: int = 0


def peeled(region: Region, rows: int, halo: Halo, edges: Edges) -> Peeled | str:
    """The loop with ``rows`` rows per iteration and the smallest first stripe, or the reason why there is none."""
    height = region.exit.shape[1]
    for start in range(height - 2 * rows + 1):
        found = _peeled_from(region, start, rows, halo, edges)
        if found is not None:
            return found
    return f"no two stripes of {rows} rows are alike"


def _peeled_from(region: Region, start: int, rows: int, halo: Halo, edges: Edges) -> Peeled | None:
    """The loop after a first stripe of ``start`` rows; None when its first two iterations are not alike."""
    height = region.exit.shape[1]
    head = [Rows(0, start)] if start else []
    stripes_at = partial(stripes_of, region, halo=halo, edges=edges)
    probe = stripes_at([*head, Rows(start, start + rows), Rows(start + rows, start + 2 * rows)])
    if isinstance(probe, str) or not _alike(region, probe[-2], probe[-1]):
        return None
    cuts = [Rows(row, row + rows) for row in range(start, height - rows + 1, rows)]
    stripes = stripes_at([*head, *cuts])
    if isinstance(stripes, str):
        return None
    turns = stripes[len(head) :]
    count = 1
    while count < len(turns) and _alike(region, turns[count - 1], turns[count]):
        count += 1
    end = start + count * rows
    tail = [Rows(end, height)] if end < height else []
    whole = stripes_at([*head, *cuts[:count], *tail])
    if isinstance(whole, str):
        return None
    step = _steps(region, turns[0], turns[1])
    reads = {(x, at): tuple(at.start + step[x] * t for t in range(count)) for x, at in _reads(region, turns[0])}
    after = {
        tensor: _moved(window.kept, count * (turns[1].windows[tensor].needed.start - window.needed.start))
        for tensor, window in turns[0].windows.items()
        if window.kept.count
    }
    steps = {t: turns[1].windows[t].needed.start - window.needed.start for t, window in turns[0].windows.items()}
    first, last = whole[0] if head else None, whole[-1] if tail else None
    jobs = {op: job if kind_of(op).is_pad else job.padding_columns_itself() for op, job in turns[0].jobs.items()}
    turn = replace(turns[0], jobs=jobs)
    return Peeled(rows, turn, reads, tuple(range(start, end, rows)), first, last, after, steps)


def _moved(rows: Rows, by: int) -> Rows:
    return Rows(rows.start + by, rows.end + by)


def _alike(region: Region, one: Stripe, other: Stripe) -> bool:
    """Whether two stripes do the same but for the rows at which they start."""
    same = _shape(region, one) == _shape(region, other)
    kept = all(
        other.windows[tensor].kept.start - window.needed.start
        == other.windows[tensor].needed.start - window.needed.start
        for tensor, window in one.windows.items()
    )
    return same and kept and _has_one_step_each(region, one, other)


def _shape(region: Region, stripe: Stripe) -> tuple[object, ...]:
    """What a stripe does, with all rows counted from where the rows of their tensor start."""
    found: list[object] = []
    for operator, way in region.steps:
        job = stripe.jobs.get(operator)
        if job is not None:
            skipped = job.wanted.start - job.computed.start
            found.append((job.wanted.count, job.computed.count, skipped, job.read.count, job.padding))
            read = [stripe.windows[tensor] for tensor in way.images(operator) if tensor in stripe.windows]
            found += [job.read.start - window.needed.start for window in read]
        window = stripe.windows.get(operator.outputs[0])
        found.append(None if window is None else (window.needed.count, window.kept.count, window.made.count))
    return tuple(found)


def _reads(region: Region, stripe: Stripe) -> Iterable[tuple[Tensor, Rows]]:
    """The region's inputs with the rows of them that the stripe's jobs read, in order."""
    return ((tensor, rows) for _, tensor, rows in input_reads(region, stripe))


def _has_one_step_each(region: Region, one: Stripe, other: Stripe) -> bool:
    """Whether all reads of an input move on by the same number of rows."""
    steps: dict[Tensor, set[int]] = {}
    for (tensor, before), (_, after) in zip(_reads(region, one), _reads(region, other), strict=True):
        steps.setdefault(tensor, set()).add(after.start - before.start)
    return all(len(found) == 1 for found in steps.values())


def _steps(region: Region, one: Stripe, other: Stripe) -> dict[Tensor, int]:
    pairs = zip(_reads(region, one), _reads(region, other), strict=True)
    return {tensor: after.start - before.start for (tensor, before), (_, after) in pairs}
