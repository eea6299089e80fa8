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
the head alone. In mlperf_kws_int8 (reference kernels) the largest step needs 8,448 bytes, and no plan of the model as
it came less than 10,048.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from ..graph.alignment import ARENA_ALIGNMENT
from ..ir.copying import copy_model
from ..ir.model import Model, Operator, Tensor
from ..kernels.portable import PORTABLE
from ..kernels.profile import KernelProfile
from ..memory.arrange import place
from ..memory.cost import Cost, cost_in
from ..options import Options
from .judge import stripe
from .least_needs import least_needs
from .lower import row_bytes
from .region import Region, region_of
from .stop import EmergencyStop
from .streamed import is_within
from .striped_region import StripedRegion

_SIZES = (1, 2, 4)
"""Rows of a stripe, in the fewest whose bytes are a multiple of the alignment."""
_PLANS = 48
"""How many models are planned at most."""


@dataclass(frozen=True)
class LastFirst:
    """The regions in stripes whose last one runs first, the model with them, and what it costs then."""

    regions: tuple[StripedRegion, ...]
    model: Model
    cost: Cost


def last_first(
    model: Model, profile: KernelProfile, options: Options, known: Cost, stop: EmergencyStop
) -> LastFirst | None:
    """The model, in its own order, with operators in stripes of which the last runs first; None if that costs no less.

    One after the other is chosen, as long as each lowers the head. ``known``: a cost that is reached elsewhere. The
    model stays as it is.
    """
    if options.objective != "head" or profile.relations is PORTABLE.relations:
        return None
    search = _Search(model, profile, options, stop)
    found = search.run()
    return found if found is not None and found.cost < known else None


class _Search:
    def __init__(self, model: Model, profile: KernelProfile, options: Options, stop: EmergencyStop) -> None:
        self._model, self._profile, self._options, self._stop = model, profile, options, stop
        self._least = max(least_needs(model, profile), default=0)
        self._plans = 0

    def run(self) -> LastFirst | None:
        """Add the stripes that lower the head most, again and again."""
        whole = self._cost(self._model)
        best: LastFirst | None = None
        head, candidates = whole.head if whole is not None else 0, list(self._candidates())
        while head > self._least:
            chosen = best.regions if best is not None else ()
            taken = {region.first for region in chosen}
            every = [self._tried((*chosen, each)) for each in candidates if each.first not in taken]
            found = min((each for each in every if each is not None), key=lambda each: each.cost, default=None)
            if found is None or found.cost.head >= head:
                break
            best, head = found, found.cost.head
        return best

    def _candidates(self) -> Iterator[StripedRegion]:
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
                    yield StripedRegion(step, step + 1, (*range(rows, height, rows), height), "recompute", "trim")

    def _tried(self, regions: tuple[StripedRegion, ...]) -> LastFirst | None:
        """The model with these stripes; None beyond the limits, or when enough has been planned."""
        if self._plans >= _PLANS or self._stop.strikes():
            return None
        self._plans += 1
        made = with_last_first(self._model, regions)
        if not is_within(made, self._model, self._profile, self._options):
            return None
        cost = self._cost(made)
        return None if cost is None else LastFirst(regions, made, cost)

    def _cost(self, model: Model) -> Cost | None:
        placement = place(model, tuple(range(len(model.main.operators))), self._profile, self._options)
        return None if placement is None else cost_in(placement.memory, self._options)


def _is_row_by_row(region: Region, operator: Operator) -> bool:
    """Whether each row of the output needs the same row of one input, and no other one."""
    axis = region.ways[0].rows
    is_same = (axis.reach, axis.stride, axis.factor, axis.before) == (1, 1, 1, 0)
    return is_same and len(region.inputs) == 1 and operator.outputs[0].origin is None


def with_last_first(model: Model, regions: tuple[StripedRegion, ...]) -> Model:
    """A copy with these single operators in stripes, of which the last one runs first.

    Raises InfeasibleError where one cannot be in stripes.
    """
    made = copy_model(model)
    exits = [made.main.operators[region.first].outputs[0] for region in regions]
    stripe(made, regions)
    for exit_ in exits:
        _turn(made, exit_)
    return made


def _turn(model: Model, exit_: Tensor) -> None:
    """Run the stripes that are joined to ``exit_`` in turn from the last to the first; then what joins them."""
    operators = model.main.operators
    joining, stripes = set[Operator](), list[Operator]()
    pending = [exit_]
    while pending:
        producer = pending.pop().producer
        assert producer is not None
        if producer.name == "CONCATENATION":
            joining.add(producer)
            pending += [tensor for tensor in producer.inputs if tensor is not None]
        else:
            stripes.append(producer)
    position = {operator: at for at, operator in enumerate(operators)}
    stripes.sort(key=position.__getitem__)
    first, end = position[stripes[0]], 1 + max(position[each] for each in joining)
    inner = range(first, end)
    moved = {position[each] for each in (*stripes, *joining)}
    order = (
        *range(first),
        *(at for at in inner if at not in moved),
        *(position[each] for each in reversed(stripes)),
        *(at for at in inner if operators[at] in joining),
        *range(end, len(operators)),
    )
    model.main.reorder(order)
