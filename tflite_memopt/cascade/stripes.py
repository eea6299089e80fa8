"""Which rows each operator of a region computes in each stripe: integers only, no graph is touched.

    stripe       0        1        2          rows of the exit are cut into stripes; going up, every operator needs a
    exit      |------||------||------|        few more rows (the *halo*), which two stripes share
    above     |--------|                      recompute: each stripe computes its halo anew
                   |--------|
                         |--------|
    above     |--------|                      rolling: the rows that the stripe before has computed are kept
                        |------|              (their window is joined from the kept rows and the new ones)
                               |-----|

At the edge of the image a SAME window needs padding, at the edge of a stripe it must not have any. Two ways:
``pad``: PAD the rows with the zero point, then a VALID window. ``trim``: a SAME window over a few rows more, whose
outermost output rows are wrong and cut off; pools always take this one, since their padding does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..ir.model import Operator, Tensor
from ..operators.rows import Axis, RowByRow, Rows
from ..operators.table import kind_of
from .cut_table import Ends, even_ends
from .region import Region

Halo = Literal["recompute", "rolling"]
Edges = Literal["pad", "trim"]


@dataclass(frozen=True)
class Job:
    """One operator in one stripe: it makes ``wanted`` of ``computed`` rows of its output from ``read`` rows.

    ``padding`` is (above, below, left, right) to put around the rows first; the window is then VALID. None: the
    operator stays as it is. ``step``: where it is not 0, the operator pads columns by itself, and its window steps over
    so many rows.
    """

    wanted: Rows
    computed: Rows
    read: Rows
    padding: tuple[int, int, int, int] | None = None
    step: int = 0

    def padding_columns_itself(self) -> Job:
        """The same job without a padded copy, where it is a window that makes one row.

        SAME pads by ``max(0, (outputs - 1) * stride + window - inputs)`` (tensorflow/lite/kernels/padding.h): rows get
        none where the window steps over all that there are.
        """
        if self.padding is None or self.computed.count > 1 or not any(self.padding[2:]):
            return self
        above, below = self.padding[:2]
        return replace(self, padding=(above, below, 0, 0), step=above + self.read.count + below)


@dataclass(frozen=True)
class Window:
    """Rows of a tensor that a stripe needs: ``kept`` from the stripe before (may be empty), then ``made`` ones."""

    needed: Rows
    kept: Rows
    made: Rows


@dataclass(frozen=True)
class Stripe:
    """What runs in one stripe: a job for each operator that has something to do, a window for each inner tensor."""

    jobs: Mapping[Operator, Job]
    windows: Mapping[Tensor, Window]

    def kept(self) -> dict[Tensor, Rows]:
        """The rows that it gets from the stripe before it, of every tensor that has such rows."""
        return {tensor: window.kept for tensor, window in self.windows.items() if window.kept.count}


def stripes_of(region: Region, cuts: Sequence[Rows], halo: Halo, edges: Edges) -> tuple[Stripe, ...] | str:
    """The work of each stripe, for output rows ``cuts`` in order; or the reason why it cannot be done."""
    held: Mapping[Tensor, Rows] = {}
    stripes = []
    for rows in cuts:
        stripe = _stripe(region, rows, held, edges)
        if isinstance(stripe, str):
            return stripe
        stripes.append(stripe)
        if halo == "rolling":
            held = {tensor: window.needed for tensor, window in stripe.windows.items()}
    return tuple(stripes)


def even_cuts(height: int, count: int, multiple: int = 1) -> tuple[Rows, ...]:
    """``count`` stripes or fewer of a tensor's rows, as even as multiples of so many rows allow."""
    return cuts_at(even_ends(height, count, multiple))


def cuts_at(ends: Ends) -> tuple[Rows, ...]:
    """The rows of stripes that end with these rows, half-open."""
    return tuple(Rows(start, end) for start, end in zip((0, *ends), ends, strict=False))


def _stripe(region: Region, rows: Rows, held: Mapping[Tensor, Rows], edges: Edges) -> Stripe | str:
    needs: dict[Tensor, Rows] = {region.exit: rows}
    jobs: dict[Operator, Job] = {}
    windows: dict[Tensor, Window] = {}
    outside = set(region.inputs)
    for operator, way in reversed(region.steps):
        output = operator.outputs[0]
        before = held.get(output, Rows(0, 0))
        window = _window(needs.get(output, Rows(before.end, before.end)), before)
        windows[output] = window
        if not window.made.count:
            continue
        job = _job(operator, way, window.made, edges)
        if not job.read.count:
            return f"a stripe of '{output.name}' would be padding only"
        jobs[operator] = job
        for tensor in way.images(operator):
            if tensor not in outside:
                needs[tensor] = job.read if tensor not in needs else needs[tensor].hull(job.read)
    return Stripe(jobs, {tensor: window for tensor, window in windows.items() if tensor is not region.exit})


def input_reads(region: Region, stripe: Stripe) -> Iterator[tuple[Operator, Tensor, Rows]]:
    """The operators of a stripe that read rows of the region's inputs, in order, with the input and the rows."""
    for operator, way in region.steps:
        if operator in stripe.jobs:
            rows = stripe.jobs[operator].read
            yield from ((operator, tensor, rows) for tensor in way.images(operator) if tensor in region.inputs)


def _window(needed: Rows, before: Rows) -> Window:
    """Keep the rows that the previous stripe has, where no gap is between them and the new ones."""
    split = min(before.end, needed.end) if before.start <= needed.start < before.end else needed.start
    return Window(needed, Rows(needed.start, split), Rows(split, needed.end))


def _job(operator: Operator, way: RowByRow, rows: Rows, edges: Edges) -> Job:
    axis = way.rows
    if axis.factor > 1:
        read = axis.reads(rows)
        return Job(rows, axis.makes(read), read)
    if not way.is_window:
        above, below = axis.padding_of(rows)
        padding = (above, below, way.columns.before, way.columns.after)
        return Job(rows, rows, axis.reads(rows), padding if kind_of(operator).is_pad else None)
    if not _has_padding(axis, way.columns):
        return Job(rows, rows, axis.reads(rows), (0, 0, 0, 0))
    if edges == "pad" and kind_of(operator).beyond != "not counted":
        above, below = axis.padding_of(rows)
        return Job(rows, rows, axis.reads(rows), (above, below, way.columns.before, way.columns.after))
    return _trimmed(axis, rows)


def _has_padding(rows: Axis, columns: Axis) -> bool:
    return any((rows.before, rows.after, columns.before, columns.after))


def _trimmed(axis: Axis, rows: Rows) -> Job:
    """The rows to give to a SAME window so that its own padding is that of the whole tensor.

    The padding depends on the number of rows modulo the stride alone; the first row must be a multiple of it.
    """
    exact = axis.reads(rows)
    first = exact.start // axis.stride * axis.stride
    missing = (axis.size - exact.end) % axis.stride
    last = min(axis.size, exact.end + missing)
    start = first // axis.stride
    return Job(rows, Rows(start, start - (first - last) // axis.stride), Rows(first, last))
