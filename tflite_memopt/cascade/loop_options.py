"""What regions need as loops: each is written into a copy of its region alone, and counted there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.layout import memory_layout
from ..memory.together import join
from ..plan.bounds import max_breadth
from .arena_terms import arena_terms
from .excerpt import excerpt
from .loop.lower import lower_loop, turns_of
from .region import Region, region_of
from .select import Option, SelectionLimits
from .striped_region import LoopMode, StripedRegion

ROWS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Rows of the exit that a turn makes."""
_MOST = 3
"""Numbers of rows, of those that are possible, that are looked at in one form of loop."""


@dataclass(frozen=True)
class _Counted:
    """Of a model of a region alone: a lower bound on its head, tail and temporaries, in bytes; MACs; operators."""

    bound: int
    tail: int
    temporaries: int
    macs: int
    operators: int


class LoopOptions:
    """The loops of one model; ``looked_at`` counts those that were worked out."""

    def __init__(self, model: Model, profile: KernelProfile, limits: SelectionLimits) -> None:
        self._model, self._profile, self._limits = model, profile, limits
        self.looked_at = 0

    def of_interval(
        self, first: int, end: int, mode: LoopMode, across: int, whole: int
    ) -> Iterator[tuple[StripedRegion, Option]]:
        """Steps ``first`` to ``end``, half-open, as loops that need less than ``whole`` bytes.

        ``across``: bytes that are alive beside them all the time.
        """
        region = region_of(self._model.main, self._model.main.operators[first:end])
        if isinstance(region, str) or _least(region) + across >= whole:
            return
        before = self._counted(excerpt(self._model, first, end))
        found, height = 0, region.exit.shape[1]
        for rows in (rows for rows in ROWS if rows < height):
            after = self._looped(first, end, rows, mode)
            if after is None or after.macs - before.macs > self._limits.macs:
                continue
            if after.bound + across >= whole or found >= _MOST:
                break
            found += 1
            yield _region(first, end, rows, height, mode), _option(first, end, across, before, after)

    def _looped(self, first: int, end: int, rows: int, mode: LoopMode) -> _Counted | None:
        """What the region needs as a loop; None where it cannot be one."""
        halo, edges, form = mode
        part = excerpt(self._model, first, end)
        region = region_of(part.main, part.main.operators)
        assert isinstance(region, Region)
        turns = turns_of(region, rows, form, halo, edges)
        if isinstance(turns, str):
            return None
        self.looked_at += 1
        lower_loop(part, part.main, region, turns)
        return self._counted(part)

    def _counted(self, part: Model) -> _Counted:
        layout = memory_layout(part, self._profile)
        bound = max_breadth(join(layout.problem, layout.groups).problem)
        terms = arena_terms(part, self._profile)
        temporaries = terms.temporaries_with(0, 0, 0)
        return _Counted(bound, terms.structures + terms.buffers, temporaries, terms.macs, terms.operators)


def _least(region: Region) -> int:
    """Bytes that a loop has at least: all of its inputs are alive when it starts, and all of its output at its end."""
    return max(region.exit.nbytes, sum(tensor.nbytes for tensor in region.inputs))


def _region(first: int, end: int, rows: int, height: int, mode: LoopMode) -> StripedRegion:
    ends = tuple(range(rows, height, rows))
    return StripedRegion(first, end, (*ends, height), *mode)


def _option(first: int, end: int, across: int, before: _Counted, after: _Counted) -> Option:
    return Option(
        first,
        end,
        after.bound + across,
        after.tail - before.tail,
        after.temporaries - before.temporaries,
        after.macs - before.macs,
        after.operators - before.operators,
    )
