"""What regions need as loops: each is written into a copy of its region alone, and counted there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..analysis.loops import Loop, loops_of
from ..analysis.macs import operator_macs
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.layout import memory_layout
from ..memory.together import join
from ..memory.work import model_work
from ..plan.bounds import max_breadth
from .arena_terms import arena_terms
from .excerpt import excerpt
from .known_loops import Counted, Key, KnownLoops, RegionKeys, Totals
from .loop.least import least_head, loop_macs
from .loop.lower import lower_loop, turns_of
from .may_share import MayShare
from .region import Region, region_of
from .selection import Option, SelectionLimits
from .striped_region import LoopMode, StripedRegion

ROWS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Rows of the exit that a turn makes."""
_MOST = {"clamped": 3, "masked": 1, "peeled": 2}
"""Numbers of rows, of those that are possible, that are looked at. More rows rarely spare a masked loop any MACs."""


class LoopOptions:
    """The loops of one model; ``looked_at`` counts those that were worked out, here or by a search before this one.

    ``known``: what searches have found. A model must stay as it is.
    """

    def __init__(self, model: Model, profile: KernelProfile, limits: SelectionLimits, known: KnownLoops) -> None:
        self._model, self._profile, self._limits = model, profile, limits
        self.known, self._keys = known, RegionKeys(model, profile, known)
        self.looked_at = 0
        self._shares = MayShare(profile)
        self._regions: dict[tuple[int, int], Region | str] = {}
        self._whole: dict[tuple[int, int], Totals] = {}

    def of_interval(
        self, first: int, end: int, mode: LoopMode, across: int, whole: int
    ) -> Iterator[tuple[StripedRegion, Option]]:
        """Steps ``first`` to ``end``, half-open, as loops that need less than ``whole`` bytes.

        ``across``: bytes that are alive beside them all the time.
        """
        if (first, end) not in self._regions:
            self._regions[first, end] = region_of(self._model.main, self._model.main.operators[first:end])
        region = self._regions[first, end]
        if isinstance(region, str) or _least(region) + across >= whole:
            return
        lives_on = {tensor for tensor in region.inputs if self._keys.lives_on(tensor, end)}
        before = sum(operator_macs(operator) for operator in region.operators)
        found, height, key = 0, region.exit.shape[1], self._keys.of(first, end)
        for rows in (rows for rows in ROWS if rows < height):
            turns = turns_of(region, rows, mode[2], *mode[:2])
            if isinstance(turns, str) or loop_macs(region, turns) - before > self._limits.macs:
                continue
            if found >= _MOST[mode[2]] or least_head(region, turns, self._shares, lives_on) + across >= whole:
                break
            after = self._looped(first, end, rows, mode, key)
            if after.bound + across >= whole:
                break
            standing = self._as_it_stands(first, end)
            if after.totals.work - standing.work > self._limits.work:
                continue
            found += 1
            yield _region(first, end, rows, height, mode), _option(first, end, across, standing, after)

    def _as_it_stands(self, first: int, end: int) -> Totals:
        if (first, end) not in self._whole:
            part = excerpt(self._model, first, end)
            self._whole[first, end] = self._totals(part, loops_of(part))
        return self._whole[first, end]

    def _looped(self, first: int, end: int, rows: int, mode: LoopMode, key: Key) -> Counted:
        """What the region with this key needs as a loop."""
        self.looked_at += 1
        loop = key, rows, mode
        if loop not in self.known.found:
            self.known.found[loop] = self._worked_out(first, end, rows, mode)
        return self.known.found[loop]

    def _worked_out(self, first: int, end: int, rows: int, mode: LoopMode) -> Counted:
        part = excerpt(self._model, first, end)
        region = region_of(part.main, part.main.operators)
        assert isinstance(region, Region)
        turns = turns_of(region, rows, mode[2], *mode[:2])
        assert not isinstance(turns, str)
        lower_loop(part, part.main, region, turns)
        return self._counted(part)

    def _counted(self, part: Model) -> Counted:
        layout = memory_layout(part, self._profile)
        bound = max_breadth(join(layout.problem, layout.groups).problem)
        return Counted(bound, self._totals(part, layout.loops.loops))

    def _totals(self, part: Model, loops: Sequence[Loop]) -> Totals:
        terms = arena_terms(part, self._profile, loops)
        temporaries = terms.temporaries_with(0, 0, 0)
        work = model_work(part, self._profile.prices, loops)
        return Totals(terms.structures + terms.buffers, temporaries, terms.macs, terms.operators, work)


def _least(region: Region) -> int:
    """Bytes that a loop has at least: all of its inputs are alive when it starts, and all of its output at its end."""
    return max(region.exit.nbytes, sum(tensor.nbytes for tensor in region.inputs))


def _region(first: int, end: int, rows: int, height: int, mode: LoopMode) -> StripedRegion:
    ends = tuple(range(rows, height, rows))
    return StripedRegion(first, end, (*ends, height), *mode)


def _option(first: int, end: int, across: int, before: Totals, counted: Counted) -> Option:
    after = counted.totals
    return Option(
        first,
        end,
        counted.bound + across,
        after.tail - before.tail,
        after.temporaries - before.temporaries,
        after.macs - before.macs,
        after.operators - before.operators,
        work=after.work - before.work,
    )
