"""Stripes with the last one first: they undo the drift of kernels that write over their input.

A kernel that may write over its input wants its output a little below it: what it writes must stay behind what it
reads. In a chain of such operators each output lies lower than the one before, and the arena has room for the sum:

    depthwise   |=========|                          offsets grow to the right; each line is one step later
    pointwise  |=========|
    depthwise |=========|                            four blocks of a MobileNet drift by four windows of rows

An operator of which each row needs the same row of its input, such as a pointwise convolution, can run in stripes, and
the last one first. Then its output grows downwards, over rows that have been read, and lies above its input:

    input            | 1 | 2 | 3 |                   stripe 3 writes above the input, stripe 2 over input rows 3, ...
    output               | 1 | 2 | 3 |

What the chain has drifted down it goes up again. No row is computed twice; the stripes cost tail, so that this is for
the head alone. In mlperf_kws_int8 (reference kernels) the largest step needs 8,448 bytes, and no plan of the original
model less than 10,048.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from ..graph.alignment import ARENA_ALIGNMENT
from ..ir.copying import copy_model
from ..ir.model import Model, Operator
from ..kernels.portable import PORTABLE
from ..kernels.profile import KernelProfile
from ..memory.arrange import place
from ..memory.cost import Cost, cost_in
from ..memory.usage import operator_count
from ..memory.work import WorkLimit, instructions
from ..options import Options
from .alive import Alive
from .lower import row_bytes
from .region import Region, region_of
from .stop import EmergencyStop
from .tiling import Reversed, Tiling, Tilings, apply_tilings

_SIZES = (1, 2, 4)
"""Rows of a stripe, in the fewest whose bytes are a multiple of the alignment."""
_PLANS = 48
"""How many models are planned at most."""


@dataclass(frozen=True)
class ReversedStripes:
    """The tilings, the model with them, and what it costs then."""

    tilings: Tilings
    model: Model
    cost: Cost


def reversed_stripes(
    model: Model, profile: KernelProfile, options: Options, known: Cost, stop: EmergencyStop
) -> ReversedStripes | None:
    """The model, in its own order, with operators in stripes of which the last runs first; None if that costs no less.

    One after the other is chosen, as long as each lowers the head. ``known``: a cost that is reached elsewhere. The
    model stays as it is.
    """
    if options.objective != "head" or profile.relations is PORTABLE.relations:
        return None
    search = _Reversing(model, profile, options, stop)
    found = search.run()
    return found if found is not None and found.cost < known else None


class _Reversing:
    def __init__(self, model: Model, profile: KernelProfile, options: Options, stop: EmergencyStop) -> None:
        self._model, self._profile, self._options, self._stop = model, profile, options, stop
        self._least = max(Alive(model, profile).needs(), default=0)
        self._plans = 0

    def run(self) -> ReversedStripes | None:
        """Add the stripes that lower the head most, again and again."""
        whole = self._cost(self._model)
        best: ReversedStripes | None = None
        head, candidates = whole.head if whole is not None else 0, list(self._candidates())
        while head > self._least:
            chosen = best.tilings if best is not None else ()
            taken = {tiling.first for tiling in chosen}
            every = [self._tried((*chosen, each)) for each in candidates if each.first not in taken]
            found = min((each for each in every if each is not None), key=lambda each: each.cost, default=None)
            if found is None or found.cost.head >= head:
                break
            best, head = found, found.cost.head
        return best

    def _candidates(self) -> Iterator[Tiling]:
        """Single operators whose input and output must share bytes, since both need more than the largest step."""
        pinned = {name for name, _ in self._options.pins}
        for step, operator in enumerate(self._model.main.operators):
            region = region_of(self._model.main, [operator])
            if isinstance(region, str) or not _is_row_by_row(region, operator):
                continue
            tensors = (*region.inputs, region.exit)
            if sum(each.nbytes for each in tensors) <= self._least or pinned & {each.name for each in tensors}:
                continue
            height, row = region.exit.shape[1], row_bytes(region.exit)
            for size in _SIZES:
                rows = size * ARENA_ALIGNMENT // gcd(ARENA_ALIGNMENT, row)
                if rows < height:
                    yield Tiling(step, step + 1, Reversed((*range(rows, height, rows), height)))

    def _tried(self, tilings: Tilings) -> ReversedStripes | None:
        """The model with these stripes; None beyond the limits, or when enough has been planned."""
        if self._plans >= _PLANS or self._stop.strikes():
            return None
        self._plans += 1
        made = apply_tilings(copy_model(self._model), tilings)
        if not self._is_within(made):
            return None
        cost = self._cost(made)
        return None if cost is None else ReversedStripes(tilings, made, cost)

    def _is_within(self, made: Model) -> bool:
        """Whether it keeps the limits on what may be added to the model. No product is computed twice."""
        most, model = self._options.max_extra_operators, self._model
        if most is not None and operator_count(made) - operator_count(model) > most:
            return False
        return WorkLimit(instructions(model, self._profile), self._options.extra_work, self._profile).is_kept_by(made)

    def _cost(self, model: Model) -> Cost | None:
        placement = place(model, tuple(range(len(model.main.operators))), self._profile, self._options)
        return None if placement is None else cost_in(placement.memory, self._options)


def _is_row_by_row(region: Region, operator: Operator) -> bool:
    """Whether each row of the output needs the same row of one input, and no other one."""
    axis = region.ways[0].rows
    is_same = (axis.reach, axis.stride, axis.factor, axis.before) == (1, 1, 1, 0)
    return is_same and len(region.inputs) == 1 and operator.outputs[0].origin is None
